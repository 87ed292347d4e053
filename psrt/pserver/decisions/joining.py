"""Events of trainers that join a job, as a part of `PserverState`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import replace

from psrt.core.errors import PsrtError, WireError
from psrt.pserver.decisions.calls import Instruction
from psrt.pserver.decisions.departures import Departures
from psrt.pserver.decisions.job_identity import JobIdentity, PserverProcesses, no_job
from psrt.pserver.decisions.membership import Membership
from psrt.pserver.decisions.recovery import Recovery
from psrt.pserver.decisions.resizing import Resizing


class Joining(ABC):
    """The part of `PserverState` by which processes take their places."""

    job: JobIdentity | None
    members: Membership
    pservers: PserverProcesses
    recovery: Recovery
    resizing: Resizing
    aborted: PsrtError | None
    _departures: Departures
    _trainers: int

    def expect(self, job: JobIdentity, is_again: bool = False) -> None:
        """Belong to `job` before its first trainer joins; `is_again`: with its number of now."""
        self._trainers = job.trainers if is_again and self._trainers else self._trainers
        self._begin(job, trainer=0)

    def hello(
        self, trainer: int, incarnation: int, job: JobIdentity, now: float, may_resize: bool = True
    ) -> list[Instruction]:
        """Introduce a trainer's process; it sends one HELLO per connection.

        Unless the job `may_resize`, one with another number of trainers is refused for good.
        """
        check_incarnation(trainer, incarnation)
        if self.job is None:
            self._begin(job, trainer)
        elif self._asks_again(trainer, incarnation, job):
            self.raise_if_aborted()
            return []
        else:
            self.resizing.check()
            self.job.check_same(job, trainer, may_resize and self.resizing.is_allowed)
            if self.job.durability is None:
                self.job = replace(self.job, durability=job.durability)
        self.raise_if_aborted()
        self.members.join(trainer, incarnation, now)
        self._departures.schedule(now)
        return []

    def attend(self, trainer: int, incarnation: int, now: float) -> list[Instruction]:
        """Let an introduced process take the place of a former one: its first call after HELLO."""
        members = self.members_of_job(trainer)
        self.raise_if_aborted()
        self.resizing.check()
        has_attended = members.member(trainer).incarnation == incarnation
        begins_anew = self.may_begin_anew(trainer, incarnation)
        if not (begins_anew or (has_attended and self.recovery.is_beginning)):
            self.recovery.check_successor(trainer, incarnation)
        replaces = members.attend(trainer, incarnation, now)
        self._departures.schedule(now)
        return self._replaced(trainer) if replaces and not begins_anew else []

    def may_begin_anew(self, trainer: int, incarnation: int) -> bool:
        """True if a process may take the place of a trainer of whose process this pserver has no
        push.

        A trainer that a change of their number has removed has no place; it may send its CUT again.
        """
        places = [m for m in self.members.members if m.trainer == trainer]
        if not places or places[0].has_called:
            return False
        return self.recovery.may_replace_awaited(trainer, incarnation)

    def called(self, trainer: int, incarnation: int, now: float) -> JobIdentity:
        """Record a call that waits for no other trainer; return the job."""
        self.members_of_job(trainer).called(trainer, incarnation, now)
        assert self.job is not None
        return self.job

    def register(
        self,
        trainer: int,
        incarnation: int,
        pservers: Mapping[str, int],
        now: float,
        predecessor: int = 0,
        begins: bool = False,
        begins_anew: bool = False,
        have_backups: bool = False,
    ) -> JobIdentity:
        """Record a REGISTER of a trainer that found these `pservers`, incarnations by endpoint.

        `predecessor` is the process that it replaces at any of them; it `begins_anew` if none has a
        push of that one. It `begins` if it has not pushed to this one yet. Pservers of the job may
        `have_backups`.
        """
        job = self.called(trainer, incarnation, now)
        self.pservers.check_same(pservers, trainer, have_backups)
        if not (predecessor and begins_anew):
            self.recovery.check_successor(trainer, incarnation)
            self.recovery.check_predecessor(self.members, trainer, predecessor)
        if begins:
            self.recovery.begins(trainer)
        return job

    def resent(self, trainer: int, incarnation: int, now: float, cut: int) -> list[Instruction]:
        """Record that a trainer has sent all pushes again that the complete `cut` lacks."""
        self.members_of_job(trainer).called(trainer, incarnation, now)
        error = self.recovery.resent(trainer, cut)
        return [] if error is None else self.abort(error)

    def failover_waits(self, part: int, trainers: Collection[int]) -> None:
        """Record the trainers that this process waits for before it serves part `part`, too.

        Raises the error of a job that has ended meanwhile.
        """
        self.raise_if_aborted()
        self._departures.held[part] = trainers

    def recovered(self, now: float) -> None:
        """Watch for trainers that do not come back after a recovery."""
        self._departures.recovery = self.recovery
        self._departures.schedule(now)

    def _asks_again(self, trainer: int, incarnation: int, job: JobIdentity) -> bool:
        """Return True for a process that may have to send its CUT again, over a new connection.

        It takes part in a change of the number of trainers, or did so before.
        """
        assert self.job is not None
        if self.resizing.number and trainer < self.job.trainers:
            return job == self.job and self.members.has_met(trainer, incarnation)
        is_former = incarnation in self.resizing.former(trainer)
        return is_former and job != self.job and job.is_other_number_of(self.job)

    def raise_if_aborted(self) -> None:
        if self.aborted is not None:
            raise self.aborted.again()

    def members_of_job(self, trainer: int) -> Membership:
        """The membership; raises `WireError` before the first HELLO."""
        if self.job is None:
            raise no_job(trainer)
        return self.members

    @abstractmethod
    def abort(self, error: PsrtError, *, closing: int | None = None) -> list[Instruction]:
        """See `PserverState.abort`."""

    @abstractmethod
    def _begin(self, job: JobIdentity, trainer: int) -> None:
        """Belong to `job` from now on."""

    @abstractmethod
    def _replaced(self, trainer: int) -> list[Instruction]:
        """End the waits of a process that was replaced."""


def check_incarnation(trainer: int, incarnation: int) -> None:
    """Raise `WireError` for a HELLO that names no process."""
    if incarnation == 0:
        raise WireError(
            f"trainer {trainer} sent HELLO without an incarnation; it was refused.",
            hint="push_key.incarnation must be a random number drawn when the process starts.",
        )
