"""The decisions of a pserver: events in, instructions out.

`PserverState` composes the identity of the job (fixed by the first HELLO), the membership, the
rounds of Sync, the pushes of the other modes, and the clocks. It opens no socket, starts no thread
and reads no clock: the effect runner calls it under one lock with the time `now`, in seconds, and
executes the instructions it returns. An error of the *caller* is raised; errors for other calls
that wait are in the instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from psrt.core.errors import PsrtError
from psrt.core.specs import Sync
from psrt.pserver.decisions.buckets import BucketRounds
from psrt.pserver.decisions.calls import Forget, Instruction, WaitingCall
from psrt.pserver.decisions.clocks import Clocks, Meeting
from psrt.pserver.decisions.cuts import Cuts
from psrt.pserver.decisions.departures import Departures, IsGone
from psrt.pserver.decisions.job_identity import JobIdentity, PserverProcesses, wrong_mode
from psrt.pserver.decisions.joining import Joining
from psrt.pserver.decisions.membership import Membership, came_back
from psrt.pserver.decisions.pushes import Pushes, check_steps
from psrt.pserver.decisions.recovery import Recovery
from psrt.pserver.decisions.resizing import Resizing, not_resized, number_changed, of_unknown_end


class PserverState(Joining):
    """The state of one pserver process.

    A job must have `trainers` trainers, 0 = any number. `rounds` is None in the modes that push.
    `is_gone` is described in `departures`. `aborted` is the error that ended the job. Rounds and
    mini-batches count on from `beginning`. Trainers should take part in cut `proposed_cut()`.
    """

    def __init__(
        self,
        wait_timeout_s: float,
        trainers: int = 0,
        is_gone: IsGone = lambda trainer, incarnation: False,
        beginning: tuple[int, int] = (0, 0),
        proposed_cut: Callable[[], int] = lambda: 0,
    ) -> None:
        self.job: JobIdentity | None = None
        self.members = Membership(0)
        self.rounds: BucketRounds | None = None
        self._first_round, first_step = beginning
        self.pushes = Pushes(first_step)
        self._proposed_cut = proposed_cut
        self.pservers = PserverProcesses()
        self.recovery, self.resizing = Recovery(), Resizing()
        self.clocks = Clocks(self.members, wait_timeout_s)
        self.cuts = Cuts(self.members, wait_timeout_s, proposed_cut)
        self.aborted: PsrtError | None = None
        self._is_gone = is_gone
        self._departures = Departures(wait_timeout_s, is_gone)
        self._trainers, self._wait_timeout_s = trainers, wait_timeout_s

    # --- events ------------------------------------------------------------------------------

    def pull(self, trainer: int, incarnation: int, now: float, acknowledges: bool) -> None:
        """Record a PULL; one that `acknowledges` drops log entries, so it must not come late."""
        members = self.members_of_job(trainer)
        self.raise_if_aborted()
        record = members.called_while_running if acknowledges else members.called
        record(trainer, incarnation, now)
        self.recovery.check(trainer if self.rounds is not None else None)

    def exchange(self, call: WaitingCall, now: float) -> list[Instruction]:
        """Add a trainer's push to a round of Sync; `call` waits for an instruction."""
        members = self.members_of_job(call.trainer)
        if self.rounds is None:
            raise wrong_mode(self.job, "EXCHANGE", "mode Sync")
        self.raise_if_aborted()
        self.resizing.check()
        members.called_while_running(call.trainer, call.incarnation, now)
        arrived = [*self.cuts.pushed(call), *self.rounds.arrive(call, now)]
        return [*arrived, *self.cuts.crossed(self.rounds.waiting)]

    def push(self, call: WaitingCall, steps: int, now: float) -> list[Instruction]:
        """Apply a push that covers `steps` mini-batches on arrival."""
        members = self.members_of_job(call.trainer)
        if self.rounds is not None:
            raise wrong_mode(self.job, "PUSH", "another mode")
        check_steps(call.trainer, steps)
        self.raise_if_aborted()
        self.resizing.check()
        members.called_while_running(call.trainer, call.incarnation, now)
        return [*self.cuts.pushed(call), *self.pushes.arrive(call, steps, members.lineages)]

    def meet(self, call: WaitingCall, meeting: Meeting, now: float) -> list[Instruction]:
        """Record a trainer's time on a clock; `call` waits until the others have reached it."""
        members = self.members_of_job(call.trainer)
        self.raise_if_aborted()
        record = members.called_while_running if meeting.waits else members.called
        record(call.trainer, call.incarnation, now)
        return self.clocks.arrive(call, meeting, now)

    def cut(
        self, call: WaitingCall, number: int, now: float, trainers: int = 0
    ) -> list[Instruction]:
        """Record that a trainer takes part in a cut; `call` waits until the tables are frozen.

        With `trainers`, the number with which the job goes on, it waits until the cut has ended.
        """
        self.raise_if_aborted()
        if (repeated := self.resizing.repeated(call, number)) is not None:
            return repeated
        self.members_of_job(call.trainer).called_while_running(call.trainer, call.incarnation, now)
        arrived = self.cuts.arrive(call, number, now, trainers)
        rounds = self.rounds
        return [*arrived, *self.cuts.crossed(rounds.waiting if rounds is not None else list)]

    def frozen(self) -> list[Instruction]:
        """Record that the tables are frozen for a cut."""
        trainers, number, calls = self.cuts.trainers, self.cuts.number, self.cuts.calls
        if not trainers:
            return self.cuts.frozen()
        self.resizing.begin(number, trainers, calls)
        self.cuts.restore(number)
        return []

    def resized(self) -> list[Instruction]:
        """Begin anew from the frozen tables with another number of trainers: its cut is complete.

        Counts of rounds and mini-batches go on; numbers of cuts, too.
        """
        assert self.job is not None, "a job has a cut"
        number, trainers, former = self.resizing.number, self.resizing.trainers, self.members
        if (rounds := self.rounds) is not None:
            self._first_round = rounds.newest_open
        ended = self.clocks.abort(number_changed(trainers))
        self.recovery = Recovery()
        self._departures = Departures(self._wait_timeout_s, self._is_gone)
        self.expect(replace(self.job, trainers=trainers), is_again=True)
        if rounds is not None and self.rounds is not None:
            self.rounds.applied = rounds.applied
        self.cuts.restore(number)
        answered = self.resizing.done(former.members)
        self.members.refuse(self.resizing.former)
        return [*ended, *answered]

    def not_resized(self, why: str) -> list[Instruction]:
        """Go on with the trainers that there are: the cut of a change was given up."""
        return self.resizing.fail(not_resized(self.resizing.number, why))

    def resize_unknown(self) -> list[Instruction]:
        """End the job: other pservers may have begun anew."""
        return self.abort(of_unknown_end(self.resizing.number, self.resizing.trainers))

    def closed(self, bucket: int = 0, round: int = 0) -> list[Instruction]:
        """Record that the round of a `Close` of `bucket` was applied.

        No cut is announced behind one that a killed predecessor may have answered, without that.
        """
        assert self.rounds is not None, "only rounds give a Close"
        if not self.recovery.missing:
            self.cuts.announce_behind(round)
        return self.rounds.closed(bucket)

    def applied(self, call: WaitingCall, error: PsrtError | None = None) -> list[Instruction]:
        """Record that the push of an `Apply` was applied, or ended with `error`."""
        return self.pushes.applied(call, error)

    def complete(
        self,
        trainer: int,
        incarnation: int,
        now: float,
        will_confirm: bool = False,
        confirms: bool = False,
        position: str = "",
    ) -> list[Instruction]:
        """Record that a trainer has finished, at `position`; no call waits for it from now on.

        The job lasts until a trainer that `will_confirm` has done so, or had time to."""
        self.resizing.check()
        self.members_of_job(trainer).called(trainer, incarnation, now)
        self.members.complete(trainer, now, will_confirm, confirms, position)
        self.recovery.completed(trainer)
        in_round = self.rounds.close_if_complete() if self.rounds is not None else []
        return self._with_waits(in_round)

    def leave(self, trainer: int, incarnation: int, now: float) -> list[Instruction]:
        """Record that a trainer was asked to end, and leaves before it has completed."""
        self.resizing.check()
        members = self.members_of_job(trainer)
        if self.aborted is not None or not members.leave(trainer, incarnation, now):
            return []
        ended = self._with_losses(self._departures.left(members, trainer, now))
        return [*ended, *self._forgotten()]

    def expire(self, now: float) -> list[Instruction]:
        """End the waits whose deadline has passed, and those for trainers that have left."""
        in_round = self.rounds.expire(now) if self.rounds is not None else []
        ended = self._with_waits(in_round)
        if self.aborted is None:
            ended += self._with_losses(self._departed(now))
        self.members.stop_lingering(now)
        ended += [*self.clocks.expire(now), *self.cuts.expire(now)]
        return [*ended, *self._forgotten()]

    def abort(self, error: PsrtError, *, closing: int | None = None) -> list[Instruction]:
        """End the job: `error` goes to every call that waits, and to later ones that would.

        `closing` is the bucket whose closing round is given up; its calls fail too.
        """
        self.aborted = error
        in_round = self.rounds.abort(error, closing=closing) if self.rounds is not None else []
        return [*self._with_waits(in_round), *self.resizing.fail(error)]

    # --- questions ---------------------------------------------------------------------------

    def next_deadline(self) -> float | None:
        """The earliest time at which `expire` has something to do."""
        of_round = self.rounds.next_deadline() if self.rounds is not None else None
        check_s = None if self.aborted else self._departures.due_s
        others = (self.clocks.next_deadline(), self.cuts.next_deadline(), check_s)
        all_s = (of_round, *others, self.members.lingers_until())
        return min((deadline_s for deadline_s in all_s if deadline_s is not None), default=None)

    @property
    def has_ended(self) -> bool:
        """True once all trainers have completed, and no repetition of COMPLETE is expected."""
        return self.members.ended() and self.members.lingers_until() is None

    @property
    def lost(self) -> PsrtError | None:
        """The error of a job whose last trainers left; it still accepts a new process."""
        return self._departures.lost

    @property
    def open_round(self) -> int:
        return self.rounds.open if self.rounds is not None else 0

    @property
    def global_step(self) -> int:
        """Mini-batches of all trainers, in the modes that push."""
        return self.pushes.step

    def update_presence(self, now: float) -> None:
        """Record which running trainers are present and which are gone."""
        self._departures.update_presence(self.members, now)

    # --- inside ------------------------------------------------------------------------------

    def _begin(self, job: JobIdentity, trainer: int) -> None:
        """Belong to `job` from now on; raises if it, or the `trainer` that names it, is illegal."""
        job.check()
        job.check_size(self._trainers, trainer)
        members = Membership(job.trainers)
        members.member(trainer)
        self.job, self.members = job, members
        self.clocks = Clocks(members, self._wait_timeout_s)
        self.cuts = Cuts(members, self._wait_timeout_s, self._proposed_cut)
        policy = self._departures.policy = job.mode.on_trainer_loss
        if isinstance(job.mode, Sync):
            self.rounds = BucketRounds(members, policy, self._wait_timeout_s, self._first_round)

    def _replaced(self, trainer: int) -> list[Instruction]:
        """End the waits of a process that was replaced; under `abort` that ends the job."""
        in_round = self.rounds.replaced(trainer) if self.rounds is not None else []
        if self.rounds is None and self._departures.policy == "abort":
            return self.abort(came_back(trainer, "the job was aborted"))
        others = [*self.clocks.replaced(trainer), *self.cuts.replaced(trainer)]
        return self._with_waits([*in_round, *others])

    def _departed(self, now: float) -> list[Instruction]:
        """Apply the policy to trainers that have left, if it is time."""
        checked = self._departures.check(self.members, now) if self._departures.is_due(now) else []
        missing = self.clocks.missing_at(now)
        if not missing or self._departures.aborted is not None:
            return checked
        return [*checked, *self._departures.end_waits(self.members, missing, now)]

    def _with_losses(self, departed: list[Instruction]) -> list[Instruction]:
        """Add the instructions for waits that go on without the departed, or end with the job."""
        if self._departures.aborted is not None:
            return [*departed, *self.abort(self._departures.aborted)]
        in_round = self.rounds.close_if_complete() if self.rounds is not None else []
        return self._with_waits([*departed, *in_round])

    def _forgotten(self) -> list[Instruction]:
        """Drop what is kept for trainers that have just been lost."""
        lost = self.members.take_newly_lost()
        for trainer in lost:
            self.recovery.lost(trainer)
        return list(map(Forget, lost))

    def _with_waits(self, in_round: list[Instruction]) -> list[Instruction]:
        """Add those of clocks and cuts after a round lost a trainer or ended the job."""
        if self.aborted is None and self.rounds is not None:
            self.aborted = self.rounds.aborted
        if self.aborted is not None:
            ended = [*self.clocks.abort(self.aborted), *self.cuts.abort(self.aborted)]
        else:
            ended = [*self.clocks.answer_met(), *self.cuts.freeze_if_complete()]
        return [*in_round, *ended]
