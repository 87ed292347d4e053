"""The change log of a sparse table: the batches of ids that trainers under Geo have pushed.

Batches are in the order in which they were applied. Positions count batches from 1; a trainer that
asks from position 0 has nothing yet and needs every row of the table.

    position:   4        5        6        7     ┊ 8 = end
    batch:   dropped  dropped  (0: a b) (1: b c) ┊          trainer 0, since 6 → {b, c}, 8
                               └ start

The log of a process that goes on for a killed one begins in a range of positions of its own, drawn
by lot: it is unknown how far the logs of all former processes got, and a reader that asks from a
position of another log gets every row.

A position in a request acknowledges all batches before it. Batches that every reader has
acknowledged are dropped. From the rest, compaction drops an id of a batch if two newer batches, of
different trainers, have it: no reader's answer changes, since one of the two is not its own. So
after a compaction the log has at most twice the distinct ids pushed since the slowest reader asked;
the next one comes at `_SLACK` times its size. Reading changes only acknowledgements, so a request
may be repeated. Pure bookkeeping; the table calls it under a lock.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from psrt.core.randomness import system_random
from psrt.core.types import I64
from psrt.kernels.tables import rows as row_kernels

_SLACK = 2
_RANGE = 1 << 32
"""Positions of one log: more batches than a process applies."""
_RANGES = 1 << 30
"""Ranges to draw from; two logs of one table hardly ever have the same."""
_LEAST_IDS = 1 << 16  # 512 KiB: below it, compaction does not pay off


@dataclass(frozen=True)
class _Batch:
    position: int
    trainer: int
    ids: I64


class ChangeLog:
    """Batches by position: all from `start` to `end` - 1.

    If it `has_predecessors`, readers may ask from positions of theirs.
    """

    def __init__(self, least_ids: int = _LEAST_IDS) -> None:
        self.start = 1
        self.end = 1
        self.has_predecessors = False
        self._batches: deque[_Batch] = deque()
        self._size = 0
        self._limit = self._least = least_ids
        self._acknowledged: dict[int, int] = {}

    @classmethod
    def behind(cls, processes: int) -> ChangeLog:
        """An empty log of a process behind so many that were killed."""
        log = cls()
        if processes:
            log.restart(log.end)
        return log

    def __len__(self) -> int:
        """The number of ids in the log, repeated ones included."""
        return self._size

    def add(self, trainer: int, ids: I64) -> None:
        """Append a copy of the distinct `ids` (n,) that `trainer` pushed; they are applied."""
        self._batches.append(_Batch(self.end, trainer, ids.copy()))
        self._size += len(ids)
        self.end += 1
        if not self._acknowledged:  # no reader: the first one asks for every row
            self._drop_acknowledged()
        elif self._size > self._limit:
            self._compact()

    def since(self, trainer: int, position: int) -> I64 | None:
        """The distinct ids (n,) that others pushed from `position` to `end`.

        None if the log does not reach back so far, or `position` is of another log: then it may be
        any row. Acknowledges all batches before `position` for `trainer`.
        """
        position = position if position <= self.end else 0
        self._acknowledged[trainer] = position or self.end
        self._drop_acknowledged()
        if position < self.start:
            return None
        others = [b.ids for b in self._batches if b.position >= position and b.trainer != trainer]
        ids = np.concatenate([np.empty(0, np.int64), *others])
        # Sorting them would take ten times as long: a fifth of the work of a pserver in Geo.
        return ids if len(others) == 1 else row_kernels.unique(ids, row_kernels.CellBuffer())[0]

    def restart(self, position: int) -> None:
        """Begin in another range than that of `position`, which the log of a frozen table had
        reached, and than that of this log."""
        former = {position // _RANGE, self.end // _RANGE}
        drawn = system_random.randrange(1, _RANGES)
        while drawn in former:
            drawn = system_random.randrange(1, _RANGES)
        self.start = self.end = 1 + drawn * _RANGE
        self.has_predecessors = True

    def release(self, trainer: int) -> None:
        """Stop waiting for acknowledgements of `trainer`, which has completed."""
        self._acknowledged.pop(trainer, None)
        self._drop_acknowledged()

    def _drop_acknowledged(self) -> None:
        self.start = max(self.start, min(self._acknowledged.values(), default=self.end))
        while self._batches and self._batches[0].position < self.start:
            self._size -= len(self._batches.popleft().ids)

    def _compact(self) -> None:
        newest_first = list(reversed(self._batches))
        ids = np.concatenate([batch.ids for batch in newest_first])
        trainers = np.repeat([b.trainer for b in newest_first], [len(b.ids) for b in newest_first])
        _, numbers = row_kernels.unique(ids, row_kernels.CellBuffer())
        needed = np.empty(len(ids), np.bool_)
        row_kernels.newest_by(
            numbers, trainers, np.full(len(ids), -1, np.int64), needed.view(np.uint8)
        )
        kept: deque[_Batch] = deque()
        first = 0
        for batch in newest_first:
            of_batch = needed[first : first + len(batch.ids)]
            first += len(batch.ids)
            if of_batch.any():
                kept.appendleft(_Batch(batch.position, batch.trainer, batch.ids[of_batch]))
        self._batches, self._size = kept, int(np.count_nonzero(needed))
        self._limit = max(self._least, _SLACK * self._size)
