"""Progress of each trainer over all its processes, behind which a successor goes on; pure.

A push names the steps that it covers, in *lanes*: a step is the gradients of many parameters, which
may leave in several pushes, and of one parameter several steps may be merged. It also names the
steps that are *settled*: every pserver has all of their lanes. So this pserver keeps the steps
behind the settled ones only, and where the trainer's data go on behind them.

    settled            admitted here, by lane
    1 2 3 4 5 6 7 │    8 9      dense
                  │    8 9 10   rows         a successor computes 8, 9, 10 again, and pushes to
    position ─────┘    8        count        this pserver: dense 10, count 9 and 10

A process that comes after its trainer has completed finds nothing left to do. After the end of the
whole job it begins another lineage.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

MOST_RANGES = 32
"""Ranges of a lane that are kept before settled ones are dropped."""


class Lane(NamedTuple):
    """The gradients of a parameter in one bucket; without a name, those of a call, or its count."""

    bucket: int
    name: str


class Steps(NamedTuple):
    """The steps `first` to `last` of a lineage, which count from 1."""

    first: int
    last: int


@dataclass(frozen=True)
class PushProgress:
    """The progress that one push names.

    `origin` is the incarnation of the first process. Data go on at `position` behind the `settled`
    steps, and at `following`, if that is not empty, behind the newest covered one.
    """

    origin: int
    settled: int
    position: str
    following: str = ""
    covers: tuple[tuple[Lane, Steps], ...] = ()

    @property
    def newest(self) -> int:
        """The last step that is covered in part."""
        return max((steps.last for _, steps in self.covers), default=self.settled)


@dataclass
class RecordedLineage:
    """The recorded progress of one trainer; `following` belongs to step `newest`.

    A `completed` one has all its pushes everywhere; it is `ended` with its job.
    """

    origin: int
    settled: int = 0
    position: str = ""
    newest: int = 0
    following: str = ""
    completed: bool = False
    ended: bool = False
    lanes: dict[Lane, list[Steps]] = field(default_factory=dict)

    def record(self, progress: PushProgress) -> None:
        """Add the progress of a push that was admitted."""
        if not self.position or progress.settled > self.settled:
            self.settled, self.position = progress.settled, progress.position
        if progress.newest >= self.newest:
            self.newest, self.following = progress.newest, progress.following
        for lane, steps in progress.covers:
            ranges = self.lanes.setdefault(lane, [])
            ranges.append(steps)
            if len(ranges) > MOST_RANGES:
                self.lanes[lane] = self._behind_settled(ranges)

    def covered(self) -> list[tuple[Lane, Steps]]:
        """The lanes that this pserver has of steps behind the settled ones."""
        return [
            (lane, steps)
            for lane, ranges in sorted(self.lanes.items())
            for steps in self._behind_settled(ranges)
        ]

    def plain(self) -> list[Any]:
        """All fields as JSON, in their order."""
        covered = [[*lane, *steps] for lane, steps in self.covered()]
        where = self.settled, self.position, self.newest, self.following
        return [self.origin, *where, self.completed, self.ended, covered]

    def _behind_settled(self, ranges: Iterable[Steps]) -> list[Steps]:
        return [steps for steps in ranges if steps.last > self.settled]


class Lineages:
    """The lineages of all trainers that have one; called under the lock of `PserverState`."""

    def __init__(self) -> None:
        self._of: dict[int, RecordedLineage] = {}

    def record(self, trainer: int, progress: PushProgress | None) -> None:
        """Record an admitted push; one without progress ends the lineage."""
        if progress is None:
            self._of.pop(trainer, None)
            return
        known = self._of.get(trainer)
        if known is None or known.origin != progress.origin:
            known = self._of[trainer] = RecordedLineage(progress.origin)
        known.record(progress)

    def completed(self, trainer: int) -> None:
        """Record that a trainer has completed: all its pushes are everywhere."""
        if trainer in self._of:
            self._of[trainer].completed = True

    def job_ended(self) -> None:
        """Record that all trainers have completed, and have confirmed that they know.

        The lineage of one that was lost goes on: another pserver may still wait for its successor.
        """
        for lineage in self._of.values():
            lineage.ended = lineage.completed

    def of(self, trainer: int) -> RecordedLineage | None:
        """The lineage that a new process of a trainer goes on with."""
        return self._of.get(trainer)

    def newest(self, trainer: int) -> int:
        """The last step that this pserver has a part of, 0 = none."""
        return self._of[trainer].newest if trainer in self._of else 0

    def dump(self) -> list[list[Any]]:
        """All lineages as JSON."""
        return [[trainer, *each.plain()] for trainer, each in sorted(self._of.items())]

    def restore(self, records: Iterable[list[Any]]) -> None:
        """Continue with records of `dump`."""
        for trainer, *facts, covered in records:
            lineage = self._of[trainer] = RecordedLineage(*facts)
            for bucket, name, first, last in covered:
                lane = Lane(bucket, name)
                lineage.lanes.setdefault(lane, []).append(Steps(first, last))
