"""A change of the number of trainers at a cut, on one pserver; pure.

    STEADY ──tables frozen for the cut──▶ PENDING ──cut complete──▶ STEADY, the job begins anew
                                             │                      from the cut, calls answered
                                             ├──cut given up──▶ STEADY as before, calls fail
                                             └──its end unknown──▶ the job is aborted

The tables are not touched: they are those of the cut, because no push is admitted while a change is
pending. A pserver that begins anew forgets members, rounds and clocks, as one that was started with
the cut. Former processes of trainers are refused by name from then on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from psrt.core.errors import ErrorCode, JobError, PsrtError, UnavailableError
from psrt.pserver.decisions.calls import Fail, Instruction, SendReply, WaitingCall
from psrt.pserver.decisions.member import Member


class Resizing:
    """The change that is pending, and what is kept of former ones.

    It `is_allowed` if the job writes cuts, so that its number of trainers may change. `number`
    is the cut of the pending change, 0 = none, and `trainers` the number that comes with it.
    """

    def __init__(self) -> None:
        self.is_allowed = False
        self.number = self.trainers = 0
        self._calls: list[WaitingCall] = []
        self._done = 0  # the cut of the newest change
        self._given_up: tuple[int, PsrtError] | None = None  # the newest cut that was given up
        self._former: dict[int, set[int]] = {}  # processes before changes, by trainer

    # --- events ------------------------------------------------------------------------------

    def allow(self) -> None:
        """Record that the job writes cuts."""
        self.is_allowed = True

    def begin(self, number: int, trainers: int, calls: Sequence[WaitingCall]) -> None:
        """Hold the `calls` of a frozen cut until its end is known."""
        self.number, self.trainers, self._calls = number, trainers, list(calls)

    def repeated(self, call: WaitingCall, number: int) -> list[Instruction] | None:
        """The answer to a repeated CUT of a change; None if the call belongs to none."""
        if self.number and number == self.number:
            self._calls.append(call)
            return []
        if self._given_up is not None and number == self._given_up[0]:
            return [Fail(call, self._given_up[1].again())]
        is_former = call.incarnation in self._former.get(call.trainer, ())
        return [SendReply(call, repeated=True)] if is_former and number == self._done else None

    def done(self, members: Iterable[Member]) -> list[Instruction]:
        """Answer the calls, and refuse the processes of `members` from now on."""
        for member in members:
            processes = {member.incarnation, *member.former, *member.introduced} - {0}
            self._former.setdefault(member.trainer, set()).update(processes)
        self._done = self.number
        return [SendReply(call) for call in self._end()]

    def fail(self, error: PsrtError) -> list[Instruction]:
        """Fail the calls: the number of trainers stays."""
        if self.number:
            self._given_up = self.number, error
        return [Fail(call, error) for call in self._end()]

    # --- questions ---------------------------------------------------------------------------

    def former(self, trainer: int) -> set[int]:
        """The processes of a trainer before the changes."""
        return set(self._former.get(trainer, ()))

    def check(self) -> None:
        """Raise `UnavailableError`, by which callers try again, while a change is pending."""
        if self.number:
            raise UnavailableError(
                f"the job is about to go on with {self.trainers} trainers from cut {self.number} "
                "on; the call was refused until the cut has ended.",
                code=ErrorCode.RESIZING,
                hint="See the logs of the pservers for the end of the cut.",
            )

    # --- inside ------------------------------------------------------------------------------

    def _end(self) -> list[WaitingCall]:
        calls, self._calls = self._calls, []
        self.number = self.trainers = 0
        return calls


def number_changed(trainers: int) -> JobError:
    """The error of calls that waited for other trainers when the number changed."""
    return JobError(
        f"the job goes on with {trainers} trainers; the wait was ended.",
        code=ErrorCode.TRAINER_LOST,
        hint="Trainers join again by themselves.",
    )


def of_unknown_end(number: int, trainers: int) -> JobError:
    """The error of a job of which it is unknown how many trainers it has."""
    return JobError(
        f"it is unknown whether cut {number}, at which the job was to go on with {trainers} "
        "trainers, is complete. The job was ended.",
        hint="Start it again with --resume latest, and the number of trainers that you want.",
    )


def not_resized(number: int, why: str) -> JobError:
    """The error of a change whose cut was given up."""
    return JobError(
        f"cut {number} was given up: {why}. The number of trainers stays, and training goes on.",
        code=ErrorCode.CUT_GIVEN_UP,
        hint="See the logs of the pservers, then ask again with psrt scale.",
    )
