"""Asynchronous pushes as pure decisions: each is applied once, whoever repeats it waits for that.

    new ──arrive──▶ UNDER WAY (an `Apply` is being executed) ──applied──▶ APPLIED

A repeat of a push under way is answered with it, so that every answer says "applied": the trainer
reads what it wrote, and its clock runs no faster than its gradients.
"""

from __future__ import annotations

from psrt.core.errors import PsrtError
from psrt.pserver.calls import Answer, Apply, Call, Fail, Instruction
from psrt.pserver.dedupe import AdmittedPushes

_Name = tuple[int, int, int]  # trainer, incarnation, sequence


class Pushes:
    """`step` counts the mini-batches that the pushes admitted so far stand for."""

    def __init__(self) -> None:
        self.step = 0
        self._admitted = AdmittedPushes()
        self._under_way: dict[_Name, list[Call]] = {}

    def arrive(self, call: Call, steps: int) -> list[Instruction]:
        """A push of a running trainer's current process; it stands for `steps` mini-batches."""
        if self._admitted.admit(call.trainer, *call.key):
            self._under_way[call.trainer, *call.key] = [call]
            step, self.step = self.step, self.step + steps
            return [Apply(call, step)]
        under_way = self._under_way.get((call.trainer, *call.key))
        if under_way is None:
            return [Answer(call, repeated=True)]
        under_way.append(call)
        return []

    def applied(self, call: Call, error: PsrtError | None = None) -> list[Instruction]:
        """The `Apply` of `call` has been executed, or ended with `error`."""
        calls = self._under_way.pop((call.trainer, *call.key))
        if error is not None:
            return [Fail(waiting, error) for waiting in calls]
        return [Answer(waiting, repeated=waiting is not call) for waiting in calls]
