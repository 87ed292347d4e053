"""Timeouts of sockets: the kernel accepts whatever time is left, and none means for ever."""

from __future__ import annotations

import math
import socket
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from psrt.rpc.stream import sockets

OPTIONS = (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO)
TIMEVAL_BYTES = 16

WHOLE = (0.0, 1.0, 2.0, 59.0, 180.0, 86_400.0, 2.0**31)
PARTS = (0.0, 1e-9, 1e-7, 1e-6, 0.25, 0.5, 0.999998, 0.999999, 0.9999995, 1.0)


def awkward_times() -> list[float]:
    """Sums of whole seconds and fractions, and their neighbours in float64, above zero."""
    sums = [whole + part for whole in WHOLE for part in PARTS]
    near = [math.nextafter(s, way) for s in sums for way in (0.0, math.inf)]
    return sorted({s for s in sums + near if s > 0.0})


@pytest.fixture
def sock() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as made:
        yield made


@pytest.fixture(autouse=True)
def _stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A deadline is then the time that is left, to the last bit."""
    monkeypatch.setattr(sockets, "time", SimpleNamespace(monotonic=lambda: 0.0))


def kept_s(sock: socket.socket, option: int) -> float:
    """The timeout that the kernel keeps, in seconds; 0 is for ever."""
    seconds, microseconds = sockets._TIMEVAL.unpack(
        sock.getsockopt(socket.SOL_SOCKET, option, TIMEVAL_BYTES)
    )
    return float(seconds + microseconds / 1e6)


@pytest.mark.parametrize("option", OPTIONS)
def test_the_kernel_accepts_every_time_that_is_left(sock: socket.socket, option: int) -> None:
    framed = sockets.FrameSocket(sock, max_bytes=1024)
    refused = []
    for left_s in awkward_times():
        framed._armed_s[option] = 0.0
        framed.expire_at(left_s)
        try:
            framed._arm(option, 1.0)
        except OSError:
            refused.append(left_s)
            continue
        # The kernel rounds up to a tick, of at most 10 ms.
        assert 0.0 < kept_s(sock, option) <= left_s + 0.0101, left_s

    assert refused == []
