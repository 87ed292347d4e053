"""Progress of all trainers of a cut, dealt to another number of trainers.

    former trainer 0   epoch 2 ▒▒▒▒▒▒▒▒░░░░     dealt again: the unread rest of epoch 2,
    former trainer 1   epoch 2 ▒▒▒▒▒▒▒▒▒▒░░     and what trainer 2 has to read of epoch 3
    former trainer 2   epoch 3 ▒▒               from epoch 4 on: shared out as always

Each example that was unread goes to exactly one trainer. All trainers compute the same deal from
the positions of the cut and the sizes of files. Order is no part of it: a trainer reads its rests
one after the other, and `shuffle_seed` shuffles files again from the next whole epoch on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from psrt.core.errors import DataError
from psrt.data.reading import rests_of
from psrt.data.sources import BEGINNING, Bookmark, DataFile, DealtFiles, Reading, deal
from psrt.trainer.inputs import batches
from psrt.trainer.inputs.dealt import DealtEpoch
from psrt.trainer.inputs.job import Job
from psrt.trainer.inputs.state import AT_THE_START, DataShare, Reached, checked, reached_of

COMPLETED, LOST = "completed", "lost"
"""Positions in a cut of a trainer that had completed, and of one that had left without that."""


@dataclass(frozen=True)
class Former:
    """A trainer of the cut: its files in a whole epoch, and its progress."""

    files: tuple[DataFile, ...]
    reached: Reached

    def unread(self, epoch: int, seed: int) -> list[Reading]:
        """Return the readings that are left to it in an epoch."""
        if epoch < self.reached.epoch:
            return []
        files = self.reached.files_in(epoch, self.files, seed)
        return Bookmark(files.files, files.place).readings()

    def has_all_of(self, epoch: int) -> bool:
        """True if it has read nothing of an epoch in which its files are those of every epoch."""
        dealt = any(each.epoch == epoch for each in self.reached.dealt)
        begins = epoch == self.reached.epoch and self.reached.place == BEGINNING
        return not dealt and (begins or epoch > self.reached.epoch)


Deal: TypeAlias = Callable[[Sequence[Reading]], Sequence[DealtFiles]]
"""Deals readings to the new trainers."""


def go_on(former: Sequence[Former], seed: int, epochs: int, deal_again: Deal) -> list[Reached]:
    """Return where each new trainer begins, so that together they read what `former` did not.

    `seed` is the shuffle seed of the job, which has `epochs` epochs.
    """
    validated = former[0].reached.validated  # of trainer 0, which validates
    first = min(each.reached.epoch for each in former)
    steps = max(each.reached.steps for each in former)
    dealt: list[list[DealtFiles]] = []
    for epoch in range(first, epochs + 1):
        if all(each.has_all_of(epoch) for each in former):
            break
        unread = [reading for each in former for reading in each.unread(epoch, seed)]
        dealt.append(list(deal_again(unread)))
    trainers = len(dealt[0]) if dealt else len(deal_again(()))
    return [
        Reached(
            dealt=tuple(
                DealtEpoch(epoch, of_all[trainer].files, of_all[trainer].place)
                for epoch, of_all in enumerate(dealt, first)
            ),
            validated=validated,
        ).at_start_of(first, steps)
        for trainer in range(trainers)
    ]


def reached_in(
    cut: int, position: str, positions: Sequence[str], job: Job, share: DataShare
) -> Reached:
    """Return where the trainer of `share` goes on from a cut.

    `positions` are those of all trainers of the cut if they are to be dealt again, `position` is
    its own if not. Raises as `go_on_of` does.
    """
    source = f"cut {cut}"
    if positions:
        return go_on_of(positions, source, job, share.trainers)[share.trainer]
    if position == COMPLETED:
        return Reached(job.config.data.epochs + 1)
    return _read(position, job, share, f"{source}, trainer {share.trainer},")


def go_on_of(positions: Sequence[str], source: str, job: Job, trainers: int) -> list[Reached]:
    """Return where each of `trainers` trainers goes on from the positions of all in a cut.

    `source` names the cut in errors. A trainer without a position has read nothing. What a lost one
    had not read is given up, as it is in a job that goes on without it. Raises `ConfigError` or
    `DataError` if the positions are of other data.
    """
    data, format = job.config.data, batches.format_of(job)
    files = batches.files_of_all(job, len(positions))
    known = {
        trainer: _read(position, job, _share(job, trainer, files), f"{source}, trainer {trainer},")
        for trainer, position in enumerate(positions)
        if position not in (COMPLETED, LOST)
    }
    known |= {t: Reached(data.epochs + 1) for t, each in enumerate(positions) if each == COMPLETED}
    behind = Reached(max((each.epoch for each in known.values()), default=0) + 1)
    former = [Former(tuple(of_one), known.get(t, behind)) for t, of_one in enumerate(files)]
    return go_on(
        former,
        data.shuffle_seed,
        data.epochs,
        lambda readings: deal(rests_of(readings, format), trainers),
    )


def _share(job: Job, trainer: int, files: Sequence[Sequence[DataFile]]) -> DataShare:
    names = tuple(map(str, files[trainer]))
    return DataShare(job.config.name, trainer, len(files), names, job.config.data.shuffle_seed)


def _read(position: str, job: Job, share: DataShare, source: str) -> Reached:
    """Read a position: none, a state, or a deal whose trainer had not joined yet."""
    if not position:
        return AT_THE_START
    try:
        found = json.loads(position)
        if isinstance(found, dict) and "deal" in found:
            dealt = found["deal"]
            begins = go_on_of(dealt["positions"], source, job, int(dealt["trainers"]))
            return begins[int(dealt["trainer"])]
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise DataError(
            f"{source} has no position that psrt wrote: {position[:80]!r}. Nothing was trained.",
            hint="Resume another cut, or a file that --state wrote.",
        ) from error
    return reached_of(checked(found, source), share, source)
