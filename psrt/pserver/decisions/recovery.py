"""A recovered pserver: trainers that still have to send retained pushes again; pure.

A pserver that was killed begins anew with its state in the newest cut. Each trainer that ran then
sends the pushes behind the cut again, under their first keys, and ends them by RESENT. Until all
have, the tables lack updates that others have seen, so reads are refused; callers try again.

In Sync a trainer reads as soon as it has sent its own pushes again: the rounds that it has seen are
then closed here, and none behind them can be. If it waited for the others, one that repeats its
push to the next round would wait for this one in turn, both for ever. A trainer that joins now has
nothing to send, and rounds wait for it, so it reads at once.
"""

from __future__ import annotations

from collections.abc import Mapping

from psrt.core.errors import ErrorCode, JobError, UnavailableError
from psrt.pserver.decisions.membership import Membership


class Recovery:
    """The `awaited` trainers with their incarnations; empty in a pserver that was never killed.

    `cut` is the newest one that is in the state it goes on from; local cuts may be behind it. If it
    `is_beginning` there is none: it goes on from the beginning of its job, without any push.
    """

    def __init__(
        self, awaited: Mapping[int, int] | None = None, cut: int = 0, is_beginning: bool = False
    ) -> None:
        self.is_recovered = awaited is not None
        self.is_beginning = is_beginning
        self._cut = cut
        self._awaited = dict(awaited or {})
        self._given_up: dict[int, int] = {}  # incarnations whose pushes did not come again

    @property
    def missing(self) -> list[int]:
        """The trainers that have not sent their pushes again."""
        return sorted(self._awaited)

    def resent(self, trainer: int, complete: int) -> JobError | None:
        """Record that a trainer has sent all its pushes again that cut `complete` does not have.

        Returns the error that ends the job if this pserver goes on from before that cut: it had
        written its part when it was killed, no local cut behind it, and missed that it became
        complete.
        """
        if self.is_recovered and complete > self._cut:
            return cut_missed(self._cut, complete)
        self._awaited.pop(trainer, None)
        return None

    def begins(self, trainer: int) -> None:
        """Record that a trainer has not pushed here yet: it has nothing to send again.

        The killed predecessor had its HELLO only, which the trainer may not know.
        """
        self._awaited.pop(trainer, None)

    def completed(self, trainer: int) -> None:
        """Record that a trainer has completed: it sends nothing again."""
        self._awaited.pop(trainer, None)

    def lost(self, trainer: int) -> None:
        """Record that a trainer was lost: no reader waits for it, and no successor may come."""
        if trainer in self._awaited:
            self._given_up[trainer] = self._awaited.pop(trainer)

    def lacks(self, trainer: int) -> bool:
        """True if pushes of a trainer are missing, so that no process may take its place."""
        return trainer in self._awaited or trainer in self._given_up

    def check(self, reader: int | None = None) -> None:
        """Raise `UnavailableError`, by which callers try again, while trainers are missing.

        `reader` is a trainer of Sync that reads: it waits for itself only.
        """
        if self._awaited and (reader is None or reader in self._awaited):
            names = ", ".join(f"trainer {trainer}" for trainer in self.missing)
            raise UnavailableError(
                f"the pserver was started again and waits for {names} to send pushes again; the "
                "call was refused until then.",
                code=ErrorCode.RECOVERING,
                hint="Callers try again by themselves. If this lasts, see the logs of those "
                "trainers.",
            )

    def check_successor(self, trainer: int, incarnation: int) -> None:
        """Raise `JobError` if `trainer` is a new process, and its predecessor's pushes are lost."""
        missing = self._given_up | self._awaited
        if missing.get(trainer, incarnation) != incarnation:
            raise pushes_lost(trainer)

    def may_replace_awaited(self, trainer: int, incarnation: int) -> bool:
        """True if a new process may take the place of the awaited one: all that is recorded of that
        one is that it joined at the beginning.

        All processes of the job may have been killed then: `incarnation` may attend, and its
        REGISTER names whether a pserver has pushes of its predecessor.
        """
        return self.is_beginning and self._awaited.get(trainer, incarnation) != incarnation

    def check_predecessor(self, members: Membership, trainer: int, predecessor: int) -> None:
        """Raise `JobError` if this pserver has not met the process that `trainer` replaces.

        Later processes are refused, too, though they replace one that was met: the refused one.
        """
        if self.is_recovered and predecessor and not members.has_met(trainer, predecessor):
            self._given_up[trainer] = predecessor
            raise pushes_lost(trainer)


def pushes_lost(trainer: int) -> JobError:
    """The error for a trainer that was replaced while a pserver that it had pushed to recovered."""
    return JobError(
        f"trainer {trainer} was replaced before it had sent its retained pushes to this recovered "
        "pserver again; they are lost, and the new process was refused.",
        code=ErrorCode.TRAINER_LOST,
        hint="Start the job again with --resume latest: all processes then begin with one cut.",
    )


def never_sent(trainers: str) -> JobError:
    """The error of a job of which no process can send some pushes again."""
    return JobError(
        f"{trainers} left before it had sent its retained pushes to this recovered pserver again; "
        "they are lost, and no new process can take its place. The job was ended.",
        code=ErrorCode.TRAINER_LOST,
        hint="Start it again with --resume latest: all processes then begin with one cut.",
    )


def cut_missed(cut: int, complete: int) -> JobError:
    """The error of a pserver that recovered a cut, while a later one became complete."""
    return JobError(
        f"the pserver was killed and went on from cut {cut}, but cut {complete} became complete "
        "meanwhile, and trainers keep no pushes before that. The job was ended.",
        hint=f"Start it again with --resume latest: cut {complete} is whole.",
    )
