"""Text that a thread reads a few blocks ahead of its parser.

For compressed text: decompression overlaps with parsing, so reading is as fast as the slower of
both. The reader gets errors of the text in their place. `close` ends the thread after its current
block.
"""

from __future__ import annotations

import io
import logging
from queue import SimpleQueue
from typing import Any, TypeAlias

from psrt.core.threads import CrashReport, start_thread

log = logging.getLogger(__name__)

BLOCKS = 3
BLOCK_BYTES = 4 << 20
_LEAVE_TIMEOUT_S = 10.0

_Filled: TypeAlias = "tuple[bytearray, int, BaseException | None]"
"""A block, the bytes in it (0 = the end of the text), and the error that ended the text."""


class TextAhead(io.RawIOBase):
    """Owns and closes `text`; `name` is for the thread and the log.

    A read waits as long as the text does, because a pipe may be silent for any time.
    """

    def __init__(self, text: io.RawIOBase, name: str) -> None:
        self._text, self._name = text, name
        self._free: SimpleQueue[bytearray | None] = SimpleQueue()
        self._filled: SimpleQueue[_Filled] = SimpleQueue()
        for _ in range(BLOCKS):
            self._free.put(bytearray(BLOCK_BYTES))
        self._block: bytearray | None = None
        self._left = memoryview(b"")
        self._ended = False
        self._thread = start_thread(self._fill_all, f"reads ahead {name}", CrashReport())

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        if not self._left and not self._ended:
            self._next_block()
        count = min(len(into), len(self._left))
        into[:count] = self._left[:count]
        self._left = self._left[count:]
        return count

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        self._free.put(None)
        self._thread.join(_LEAVE_TIMEOUT_S)
        if self._thread.is_alive():
            log.warning(
                "the thread that reads %s goes on until the next block is there", self._name
            )
            return
        self._text.close()

    def _next_block(self) -> None:
        if self._block is not None:
            self._left.release()
            self._free.put(self._block)
        self._block, count, error = self._filled.get()
        self._left = memoryview(self._block)[:count]
        self._ended = not count
        if error is not None:
            raise error

    # --- the thread ---

    def _fill_all(self) -> None:
        while (block := self._free.get()) is not None:
            count, error = self._fill(block)
            if count:
                self._filled.put((block, count, None))
            if error is not None or count < len(block):
                self._filled.put((bytearray(), 0, error))
                return

    def _fill(self, block: bytearray) -> tuple[int, BaseException | None]:
        """Return the bytes of text now in the block, and the error that ended it early."""
        view, count = memoryview(block), 0
        try:
            while count < len(block) and (got := self._text.readinto(view[count:])):
                count += got
        except BaseException as error:
            return count, error
        return count, None
