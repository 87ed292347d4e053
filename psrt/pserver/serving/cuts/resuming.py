"""The cut that a job goes on from: who may, from which counts, and where its trainers begin."""

from __future__ import annotations

import json
from collections.abc import Iterable

from psrt.core.errors import ConfigError
from psrt.core.specs import Geo
from psrt.pserver.checkpoints import LateStates, SavedCut
from psrt.pserver.decisions import JobIdentity, Member, MemberState
from psrt.rpc import pb

COMPLETED, LOST = "completed", "lost"
"""Positions of a trainer that completed without naming one, and of one that was lost."""


class Resuming:
    """The beginning of a job: `cut`, or nothing if that is None."""

    def __init__(self, cut: SavedCut | None) -> None:
        self._cut = cut

    @property
    def counts(self) -> tuple[int, int]:
        """The round and the mini-batch of all trainers that the job goes on from.

        In a cut of another mode the one count is that of the other: learning rates go on, and the
        ages of rows never fall.
        """
        if self._cut is None:
            return 0, 0
        count = max(self._cut.manifest["round"], self._cut.manifest["step"])
        return count, count

    def check(self, job: JobIdentity) -> None:
        """Raise `ConfigError` unless `job` can go on from the cut."""
        if self._cut is None:
            return
        saved = self._cut.manifest["job"]
        if saved["id"] != job.job_id:
            raise ConfigError(
                f"cut {self._cut.number} is of job {saved['id']!r}, this one is {job.job_id!r}; "
                "nothing was restored.",
                hint="Give the job the name of the cut's, or another --checkpoint-dir.",
            )
        before, now = saved["mode"]["kind"], type(job.mode).__name__
        if (before == Geo.__name__) != isinstance(job.mode, Geo):
            raise ConfigError(
                f"cut {self._cut.number} is of mode {before}, this job of mode {now}. In Geo "
                "trainers hold the state of optimizers, in the other modes pservers do. Nothing "
                "was restored.",
                hint="Resume geo in geo, and any of sync, async, ssp and half_async in another.",
            )

    def kept(self, is_durable: bool) -> int:
        """The cut that late trainers may need, 0 = none: their states, and in a durable job their
        positions, which a pserver that recovers reads again."""
        if self._cut is None or not (is_durable or self._cut.has_states):
            return 0
        return self._cut.number

    def beginning_of(self, trainer: int, trainers: int) -> pb.Cut:
        """The cut, and where `trainer` of `trainers` goes on; number 0 = none.

        It has the positions of all if their data are to be dealt again.
        """
        if self._cut is None:
            return pb.Cut()
        if self._deals_again(trainers):
            return pb.Cut(number=self._cut.number, positions=self._cut.positions)
        return pb.Cut(number=self._cut.number, position=self._cut.position_of(trainer))

    def positions_of(self, members: Iterable[Member], trainers: int) -> dict[int, tuple[int, str]]:
        """Incarnation and position, by number, of the trainers that do not run.

        A lost one has no incarnation: pservers that meet its last processes may name different
        ones, and their parts of a cut belong together nevertheless.
        """
        found = {}
        for member in members:
            if member.state is MemberState.COMPLETED:
                found[member.trainer] = member.incarnation, member.position or COMPLETED
            elif member.state is MemberState.LOST:
                found[member.trainer] = 0, LOST
            elif member.state is MemberState.UNSEEN and (at := self._unseen(member, trainers)):
                found[member.trainer] = 0, at
        return found

    def late_states(
        self, members: Iterable[Member], trainers: int, index: int, pservers: int
    ) -> LateStates | None:
        """The states that trainers which have not joined will go on from, of which pserver `index`
        writes its share into a cut; None without a cut."""
        if self._cut is None:
            return None
        late = [each.trainer for each in members if each.state is MemberState.UNSEEN]
        taken = (n for trainer in late for n in range(trainer, self._cut.states, trainers))
        return LateStates(self._cut, sorted(n for n in taken if n % pservers == index))

    def _unseen(self, member: Member, trainers: int) -> str:
        """The position of a trainer that has not joined; `deal` names that of one that deals."""
        if self._cut is None or not any(self._cut.positions):
            return ""
        if not self._deals_again(trainers):
            return self._cut.position_of(member.trainer)
        deal = {"positions": self._cut.positions, "trainer": member.trainer, "trainers": trainers}
        return json.dumps({"deal": deal})

    def _deals_again(self, trainers: int) -> bool:
        assert self._cut is not None
        return self._cut.trainers != trainers or LOST in self._cut.positions
