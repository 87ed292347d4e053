"""A recovered pserver: trainers that still have to send retained pushes again; pure.

A pserver that was killed begins anew with its state in the newest cut. Each trainer that ran then
sends the pushes behind the cut again, under their first keys, and ends them by RESENT. Until all
have, the tables lack updates that others have seen, so reads are refused; callers try again.
"""

from __future__ import annotations

from collections.abc import Mapping

from psrt.core.errors import ErrorCode, JobError, UnavailableError
from psrt.pserver.decisions.membership import Membership


class Recovery:
    """The `awaited` trainers with their incarnations; empty in a pserver that was never killed."""

    def __init__(self, awaited: Mapping[int, int] | None = None) -> None:
        self.is_recovered = awaited is not None
        self._awaited = dict(awaited or {})

    @property
    def missing(self) -> list[int]:
        """The trainers that have not sent their pushes again."""
        return sorted(self._awaited)

    def resent(self, trainer: int) -> None:
        """Record that a trainer has sent all its pushes again, or has left the job."""
        self._awaited.pop(trainer, None)

    def check(self) -> None:
        """Raise `UnavailableError`, by which callers try again, while trainers are missing."""
        if self._awaited:
            names = ", ".join(f"trainer {trainer}" for trainer in self.missing)
            raise UnavailableError(
                f"the pserver was started again and waits for {names} to send pushes again.",
                code=ErrorCode.RECOVERING,
            )

    def check_successor(self, trainer: int, incarnation: int) -> None:
        """Raise `JobError` if `trainer` is a new process, and its predecessor's pushes are lost."""
        if self._awaited.get(trainer, incarnation) != incarnation:
            raise pushes_lost(trainer)

    def check_predecessor(self, members: Membership, trainer: int, predecessor: int) -> None:
        """Raise `JobError` if this pserver has not met the process that `trainer` replaces."""
        if self.is_recovered and predecessor and not members.has_met(trainer, predecessor):
            raise pushes_lost(trainer)


def pushes_lost(trainer: int) -> JobError:
    """The error for a trainer that was replaced while a pserver that it had pushed to recovered."""
    return JobError(
        f"trainer {trainer} was replaced before it had sent its retained pushes to this recovered "
        "pserver again; they are lost, and the new process was refused.",
        code=ErrorCode.TRAINER_LOST,
        hint="Start the job again with --resume latest: all processes then begin with one cut.",
    )
