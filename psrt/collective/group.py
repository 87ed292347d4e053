"""Calls in which all processes of a group take part, in the same order.

A call whose other side is gone raises `JobError` TRAINER_LOST, which names it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from psrt.collective.presence import GroupPresence
from psrt.collective.seat import GroupSeat
from psrt.core.errors import DeadlineError, ErrorCode, JobError


class TrainerGroup:
    """The processes that have met; `distributed` is torch.distributed, `process_group` its group.

    Used by the training thread, except `all_reduce`, which any one thread at a time may start.
    """

    def __init__(
        self,
        seat: GroupSeat,
        distributed: Any,
        process_group: Any,
        presence: GroupPresence,
        owned: bool,
    ) -> None:
        self.rank, self.size, self.seat = seat.rank, seat.size, seat
        self._calls, self._group, self._presence = distributed, process_group, presence
        self._owned, self._lost = owned, False

    def all_reduce(self, tensor: Any) -> Any:
        """Begin to replace `tensor` by the sum over all processes; `wait` for what it returns."""
        try:
            return self._calls.all_reduce(tensor, group=self._group, async_op=True)
        except RuntimeError as error:
            raise self._failure(error) from error

    def all_gather(self, into: Any, tensor: Any) -> None:
        """Write the tensors (n, …) of all processes to `into` (size · n, …), in order of rank."""
        parts = list(into.chunk(self.size))
        self.wait(self._begun(self._calls.all_gather, parts, tensor))

    def broadcast(self, tensor: Any) -> None:
        """Replace `tensor` by that of rank 0."""
        self.wait(self._begun(self._calls.broadcast, tensor, 0))

    def wait(self, work: Any) -> None:
        """Wait until a call has ended."""
        try:
            work.wait()
        except RuntimeError as error:
            raise self._failure(error) from error

    def exchange_notes(self, name: str, note: str, timeout_s: float) -> list[str]:
        """Return the notes of all processes under `name`, once each has given one.

        Raises `DeadlineError` naming those that gave none within `timeout_s`.
        """
        found = self._presence.notes(f"notes {name}", note, timeout_s)
        late = [f"trainer {rank}" for rank, each in enumerate(found) if each is None]
        if late:
            raise DeadlineError(
                f"{' and '.join(late)} did not come to {name!r} within {timeout_s:g} s; "
                f"trainer {self.rank} gave up.",
                hint="All trainers of a group call it equally often.",
            )
        return [each for each in found if each is not None]

    def leave(self, why: str = "") -> None:
        """End this process's part: with a reason if others go on, which then fail by its name."""
        self._presence.leave(why or "it has completed")
        if self._owned and not (self._lost or why):
            self._calls.destroy_process_group()  # after a failure it might wait for lost ones

    def _begun(self, call: Any, *arguments: Any) -> Any:
        try:
            return call(*arguments, group=self._group, async_op=True)
        except RuntimeError as error:
            raise self._failure(error) from error

    def _failure(self, error: RuntimeError) -> JobError:
        """The error of a call, with the names of those that are gone."""
        self._lost = True
        gone = self._presence.missing()
        who = " and ".join(gone) or "one of the trainers"
        what = str(error).splitlines()[0].partition("] ")[2].partition(". This")[0] or str(error)
        return JobError(
            f"{who} left, or does not answer; trainer {self.rank} cannot reduce its gradients "
            f"without it and ended ({what[:160]}).",
            code=ErrorCode.TRAINER_LOST,
            hint="See its log. In mode collective all trainers end together: begin the job anew.",
        )


def in_time(seconds: float) -> timedelta:
    """A timeout as torch takes it."""
    return timedelta(seconds=seconds)


__all__ = ["TrainerGroup", "in_time"]
