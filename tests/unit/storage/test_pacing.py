"""The rate at which files are written: pure limits, and waits that others end."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from psrt.storage.pacing import CATCH_UP_S, PIECE_BYTES, PacedWriter, RateLimit, WritePace
from tests.support.clock import ManualClock

WAIT_S = 30.0
MIB = 1 << 20


class Written:
    """An `AppendWriter` that keeps what it gets."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def write(self, *buffers: bytes | bytearray | memoryview) -> None:
        self.pieces += [bytes(each) for each in buffers]


class Gate(WritePace):
    """Counts waits in place of waiting."""

    def __init__(self) -> None:
        super().__init__(ManualClock())
        self.pieces: list[int] = []

    def wrote(self, size_bytes: int) -> None:
        self.pieces.append(size_bytes)


def test_a_writer_waits_until_its_bytes_fit_the_rate() -> None:
    limit = RateLimit(10 * MIB)

    assert limit.spend(MIB, 5.0) == pytest.approx(0.1 - CATCH_UP_S)
    assert limit.spend(MIB, 5.05) == pytest.approx(0.1)
    assert limit.spend(MIB, 5.15) == pytest.approx(0.1)


def test_a_late_writer_makes_up_for_a_short_time_only() -> None:
    limit = RateLimit(10 * MIB)
    limit.spend(MIB, 0.0)

    assert limit.spend(MIB, 100.0) == pytest.approx(0.1 - CATCH_UP_S)


@pytest.mark.parametrize(
    ("size_bytes", "within_s", "first_wait_s"), [(600 * MIB, 30.0, 0.05), (60 * MIB, 30.0, 0.1)]
)
def test_what_would_take_too_long_is_written_faster(
    size_bytes: int, within_s: float, first_wait_s: float
) -> None:
    limit = RateLimit(10 * MIB, size_bytes, within_s)
    due_s = limit.spend(10 * MIB, 0.0)

    assert limit.spend(MIB, 0.0) - due_s == pytest.approx(first_wait_s)


def test_arrays_are_written_in_pieces_with_waits_between_them() -> None:
    out, pace = Written(), Gate()
    data = bytes(range(256)) * (PIECE_BYTES // 128)

    PacedWriter(out, pace).write(b"head", b"", data)

    assert b"".join(out.pieces) == b"head" + data
    assert pace.pieces == [4, PIECE_BYTES, PIECE_BYTES]


def waits_in(act: Callable[[], None]) -> tuple[threading.Thread, threading.Event]:
    """A thread in `act`, and what is set once it has ended."""
    done = threading.Event()

    def run() -> None:
        act()
        done.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, done


def test_a_wait_under_way_ends_when_somebody_is_in_a_hurry() -> None:
    pace, asked = WritePace(ManualClock()), threading.Event()

    def is_pressed() -> bool:  # asked just before the wait
        asked.set()
        return False

    pace.begin(RateLimit(1.0), is_pressed)
    thread, done = waits_in(lambda: pace.wrote(10 * MIB))
    assert asked.wait(WAIT_S)
    assert not done.is_set()

    pace.hurry()

    assert done.wait(WAIT_S)
    thread.join(WAIT_S)
    assert not pace.waits
    pace.wrote(10 * MIB)  # a year, if it waited


def test_copies_that_take_memory_are_written_without_waits() -> None:
    pace, is_pressed = WritePace(ManualClock()), True
    pace.begin(RateLimit(1.0), lambda: is_pressed)

    pace.wrote(10 * MIB)

    assert pace.waits
