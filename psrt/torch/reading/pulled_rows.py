"""Batches whose rows come some steps before their turn, in modes whose rows others change.

The push of a step brings the rows of one batch if its backend allows that: one call less. A thread
pulls all others, each once the batch `staleness` before it is done. Either way a lookup lacks at
most that many own steps.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator, Iterator
from typing import NamedTuple

from psrt.communicator.base import ComingRows
from psrt.core.types import F32, I64
from psrt.data.reading import Ahead
from psrt.torch.reading.read_batch import LEAVE_TIMEOUT_S, ReadBatch
from psrt.torch.rows_ahead import Rows, Wanted
from psrt.torch.session import TableSession


class _Pulled(NamedTuple):
    read: ReadBatch
    rows: Rows


class _Behind(NamedTuple):
    """A batch whose rows a push brings, None = its lookups read them."""

    read: ReadBatch
    rows: ComingRows | None

    def wait(self) -> _Pulled:
        return _Pulled(self.read, {} if self.rows is None else self.rows.wait())


class PulledRows:
    """Iterates `read`; the training thread uses it.

    `_turns` has a place for each batch that was asked for, in their order, None for those of the
    thread. The semaphore has a permit for each of these; the consumer gives one with each batch it
    asks for, unless a push has asked for its rows before.
    """

    def __init__(self, read: Ahead[ReadBatch], session: TableSession, staleness: int) -> None:
        self._read, self._session = read, session
        self._permits = threading.Semaphore(0)
        self._turns: deque[_Behind | None] = deque()
        self._returned: deque[ReadBatch] = deque()  # taken from `read`, and not asked for
        self._permitted = self._taken = 0  # batches of the thread, which alone counts those taken
        self._is_asked = False  # by a push since the last batch was handed out
        self._pushes, self._has_one_push = 1, True  # of this batch so far, and of the one before
        self._ended = self.has_read = False
        self._current: _Pulled | None = None
        for _ in range(staleness):
            self._permit()
        code, leave_s = "the pull of rows ahead", LEAVE_TIMEOUT_S
        self._pulled = Ahead(
            self._pull(), staleness, "rows ahead", code=code, leave_timeout_s=leave_s
        )

    def __enter__(self) -> PulledRows:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        self._permits.release()
        self._pulled.close()

    def __iter__(self) -> Iterator[ReadBatch]:
        return self

    def __next__(self) -> ReadBatch:
        if not self._is_asked:
            self._permit()
        self._has_one_push, self._pushes, self._is_asked = self._pushes == 1, 0, False
        behind = self._turns.popleft()
        self._current = next(self._pulled) if behind is None else behind.wait()
        self.has_read |= bool(self._current.rows)
        return self._current.read

    def find(self, table: str, ids: I64) -> F32 | None:
        if self._current is None or table not in self._current.rows:
            return None
        return self._current.read.lookups.found(table, ids, self._current.rows)

    def before_push(self) -> Wanted:
        """Let the push bring the rows that the thread could pull after it.

        Where batches have several pushes each, the first one would bring rows that lack more steps
        than allowed: the thread pulls them after the last.
        """
        self._pushes += 1
        if self._is_asked and (behind := self._turns[-1]) is not None:
            self._turns[-1] = _Behind(behind.read, None)  # this batch has a second push
        elif self._has_one_push and self._pushes == 1 and self._taken == self._permitted:
            self._ask_behind()
        return {}

    def arrived(self, rows: Rows) -> None:
        """Nothing comes before the push has returned."""

    def _ask_behind(self) -> None:
        """Ask for the rows of the next batch if it has been read; the thread has none to take."""
        if not (self._returned or self._read.has_item):
            return
        read = self._next_read()
        rows = self._session.backend.read_behind(read.lookups.wanted)
        if rows is None:
            self._returned.append(read)
            return
        self._turns.append(_Behind(read, rows))
        self._is_asked = True

    def _permit(self) -> None:
        self._turns.append(None)
        self._permitted += 1
        self._permits.release()

    def _next_read(self) -> ReadBatch:
        return self._returned.popleft() if self._returned else next(self._read)

    def _pull(self) -> Generator[_Pulled, None, None]:
        while True:
            self._permits.acquire()
            if self._ended:
                return
            try:
                read = self._next_read()
            except StopIteration:
                return
            self._taken += 1
            wanted = read.lookups.wanted
            yield _Pulled(read, self._session.pull_now(wanted) if wanted else {})


__all__ = ["PulledRows"]
