"""Threads that hand errors to their callers report a crash outside of that path, too."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

import pytest

from psrt.core.errors import InternalError
from psrt.core.threads import CrashReport
from psrt.data.reading import Ahead
from psrt.data.reading.queue import BoundedQueue
from psrt.pserver.serving.service import PserverService
from psrt.rpc.grpc_ import aio_loop

WAIT_S = 20.0


class Broken(Exception):
    """A fault of psrt itself."""


def fail(*_: object) -> None:
    raise Broken("by intent")


class BrokenLoop:
    """An event loop that ends at once."""

    run_forever = fail


def test_calls_to_a_loop_that_crashed_raise_its_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(aio_loop.uvloop, "new_event_loop", BrokenLoop)  # type: ignore[attr-defined]
    monkeypatch.setattr(asyncio, "set_event_loop", lambda loop: None)
    loop = aio_loop.LoopThread()
    loop._thread.join(WAIT_S)

    with pytest.raises(InternalError, match="thread psrt-grpc crashed: by intent"):
        loop.run(asyncio.sleep(0.0), WAIT_S)

    assert "thread psrt-grpc crashed: by intent" in caplog.messages


def test_a_helper_thread_that_crashes_is_reported_to_its_pserver() -> None:
    crashes = CrashReport()
    service = PserverService(stripes=2, wait_timeout_s=WAIT_S, crashes=crashes, helper_threads=1)
    helpers: Any = service._helpers
    helpers.run([lambda: None] * 2)
    (thread,) = helpers._threads

    helpers._inbox.put("no run")
    thread.join(WAIT_S)
    service.stop()

    assert crashes.thread_name == "helper_0"
    assert isinstance(crashes.error, AttributeError)


def test_a_thread_that_prepares_ahead_and_crashes_is_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def nothing() -> Generator[int, None, None]:
        yield from ()

    monkeypatch.setattr(BoundedQueue, "producer_done", fail)

    Ahead(nothing(), capacity=1).close()

    assert "thread prepare crashed: by intent" in caplog.messages
