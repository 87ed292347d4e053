"""Text read ahead by a thread: its bytes, its errors, and the end of the thread."""

from __future__ import annotations

import io
import threading
from typing import Any

import pytest

from psrt.data.sources.text_ahead import BLOCK_BYTES, BLOCKS, TextAhead

WAIT_S = 30.0
TEXT = bytes(range(256)) * (5 * BLOCK_BYTES // 256)


class Scripted(io.RawIOBase):
    """TEXT in reads of at most `step` bytes; then the end, or an error."""

    def __init__(self, step: int = 70_000, error: Exception | None = None) -> None:
        self._rest, self._step, self._error = TEXT, step, error

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        if not self._rest and self._error is not None:
            raise self._error
        part = self._rest[: min(self._step, len(into))]
        self._rest = self._rest[len(part) :]
        into[: len(part)] = part
        return len(part)


@pytest.mark.parametrize("size", [4000, 1 << 20, 5 << 20])
def test_the_bytes_are_those_of_the_text(size: int) -> None:
    with TextAhead(Scripted(), "t") as ahead:
        found = b"".join(iter(lambda: ahead.read(size) or b"", b""))

        assert found == TEXT
        assert ahead.read(1) == b""


def test_an_error_comes_behind_the_bytes_before_it() -> None:
    with TextAhead(Scripted(error=EOFError("cut off")), "t") as ahead:
        found = bytearray()
        while len(found) < len(TEXT):
            found += ahead.read(1 << 16) or b""

        assert bytes(found) == TEXT
        with pytest.raises(EOFError, match="cut off"):
            ahead.read(1)


def test_closing_early_ends_the_thread_and_closes_the_text() -> None:
    text = Scripted()
    ahead = TextAhead(text, "early")
    ahead.read(10)

    ahead.close()
    ahead.close()

    assert text.closed
    assert not [t for t in threading.enumerate() if "reads ahead early" in t.name]


def test_no_more_is_read_ahead_than_fits_the_blocks() -> None:
    """There is text for five blocks; those there are get full, then the thread waits for one."""
    asked = threading.Semaphore(0)

    class Counted(Scripted):
        def readinto(self, into: Any) -> int:
            asked.release()
            return super().readinto(into)

    with TextAhead(Counted(step=BLOCK_BYTES), "t") as ahead:
        for _ in range(BLOCKS):
            assert asked.acquire(timeout=WAIT_S)
        assert not asked.acquire(blocking=False)

        ahead.read(BLOCK_BYTES)
        ahead.read(1)

        assert asked.acquire(timeout=WAIT_S), "the first block came back"


def test_an_empty_text_ends_at_once() -> None:
    with TextAhead(io.BytesIO(), "t") as ahead:  # type: ignore[arg-type]
        assert ahead.read() == b""
