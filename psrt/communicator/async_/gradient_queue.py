"""Gradients of one parameter that wait to be pushed, merged into groups as they arrive.

A gradient is added to its group at once rather than when the group is taken: it has to be copied
away from the executor anyway, and adding costs no more than copying. Sums are formed in the order
of the steps. Gradients that nobody writes to afterwards are not copied: 0.6 ms a step of W10.
`merge_queue` holds the lock.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from psrt.communicator.base import Gradient, Versions
from psrt.communicator.requests import WHOLE, Copies, Settled, Steps
from psrt.core.tensors import SelectedRows
from psrt.core.tracing import TracedSpan
from psrt.core.types import F32
from psrt.kernels.tables import rows as row_kernels

NOTHING_SETTLED = Settled(0, "")


class Group:
    """Gradients of one parameter, of the steps `first` to `last`; dense ones are summed up in an
    array of `copies`. Without that, gradients are given: nobody writes to them, here neither."""

    def __init__(self, first: Gradient, step: int, copies: Copies | None) -> None:
        self.count = 1
        self.first = self.last = step
        self.dense: F32 | None = None
        self._rows: list[SelectedRows] = []
        self._given = copies is None
        if isinstance(first, SelectedRows):
            self._rows.append(self._kept(first))
        elif copies is None:
            self.dense = first
        else:
            self.dense = copies.copy(first)

    def add(self, gradient: Gradient, step: int) -> None:
        self.count += 1
        self.last = step
        if isinstance(gradient, SelectedRows):
            self._rows.append(self._kept(gradient))
        elif self.dense is not None and self._given and self.count == 2:
            self.dense = self.dense + gradient
        elif self.dense is not None:
            np.add(self.dense, gradient, out=self.dense)

    @property
    def size_bytes(self) -> int:
        """An upper bound of its size in a message: rows with equal ids are merged there."""
        if self.dense is not None:
            return self.dense.nbytes
        return sum(part.ids.nbytes + part.values.nbytes for part in self._rows)

    def _kept(self, rows: SelectedRows) -> SelectedRows:
        return rows if self._given else _copy(rows)

    def merged(self, average: bool) -> Gradient:
        """The sum or the mean of all, with distinct ids if sparse; ends the group."""
        total = self.dense if self.dense is not None else merge_rows(self._rows)
        if average and self.count > 1:
            values = total.values if isinstance(total, SelectedRows) else total
            np.divide(values, np.float32(self.count), out=values)
        return total


def merge_rows(parts: list[SelectedRows]) -> SelectedRows:
    """One sparse gradient with distinct ids, rows of equal ids summed in the order given."""
    if len(parts) == 1:
        return row_kernels.merge(parts[0])
    ids = np.concatenate([part.ids for part in parts])
    values = np.concatenate([part.values for part in parts])
    return row_kernels.merge(SelectedRows(ids, values, parts[0].height, counts=_counts(parts)))


def _counts(parts: list[SelectedRows]) -> F32 | None:
    counts = [part.counts for part in parts if part.counts is not None]
    return np.concatenate(counts) if len(counts) == len(parts) else None


class GradientQueue:
    """Groups of at most `max_merge` gradients, oldest first; steps up to `apart_to` stay apart."""

    def __init__(self, copies: Copies | None, max_merge: int, apart_to: int = 0) -> None:
        self._copies, self._max_merge, self._apart_to = copies, max_merge, apart_to
        self._groups: deque[Group] = deque()
        self.waiting = 0

    def put(self, gradient: Gradient, step: int) -> None:
        newest = self._groups[-1] if self._groups else None
        if newest and newest.count < self._max_merge and newest.last > self._apart_to:
            newest.add(gradient, step)
        else:
            self._groups.append(Group(gradient, step, self._copies))
        self.waiting += 1

    @property
    def oldest(self) -> int | None:
        """The first step whose gradient waits."""
        return self._groups[0].first if self._groups else None

    @property
    def next_bytes(self) -> int:
        """Size of the oldest group in a message."""
        return self._groups[0].size_bytes if self._groups else 0

    def take(self) -> Group | None:
        """The oldest group, or None."""
        if not self._groups:
            return None
        group = self._groups.popleft()
        self.waiting -= group.count
        return group


@dataclass(frozen=True)
class Merged:
    """One push: at most one group per parameter, counted as `steps` mini-batches from `counted` on.

    `versions` are those that the oldest of these steps computed on. A push before the end of its
    step counts 0: the next one counts the step. A push `is_late` if it waited for a sender that had
    another one under way. `settled` are the steps that were answered before it. `span` is that of
    the first traced step among them.
    """

    groups: dict[str, Group]
    steps: int
    versions: Versions
    average: bool = False
    is_late: bool = False
    counted: int = 1
    settled: Settled = NOTHING_SETTLED
    span: TracedSpan | None = None

    @property
    def first(self) -> int:
        """The first step that this push covers in part."""
        counted = [self.counted] if self.steps else []
        return min([group.first for group in self.groups.values()] + counted)

    def covers(self) -> dict[str, Steps]:
        """The steps of each parameter, and without a name those that are counted."""
        found = {name: (group.first, group.last) for name, group in self.groups.items()}
        last = self.counted + self.steps - 1
        return {**found, WHOLE: (self.counted, last)} if self.steps else found

    def gradients(self) -> dict[str, Gradient]:
        """The gradients by parameter; call it once, means are formed in place."""
        return {name: group.merged(self.average) for name, group in self.groups.items()}

    @property
    def gradients_merged(self) -> int:
        return sum(group.count for group in self.groups.values())


def _copy(rows: SelectedRows) -> SelectedRows:
    counts = None if rows.counts is None else rows.counts.copy()
    return SelectedRows(rows.ids.copy(), rows.values.copy(), rows.height, rows.unique, counts)
