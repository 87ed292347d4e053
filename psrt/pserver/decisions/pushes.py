"""Asynchronous pushes as pure decisions: each is applied once, whoever repeats it waits for that.

    new ──arrive──▶ UNDER WAY (an `Apply` is being executed) ──applied──▶ APPLIED
                                                             ──error───▶ FAILED

A repeat of a push under way is answered with it, so that every answer says "applied": the trainer
reads what it wrote, and its clock runs no faster than its gradients. A push that failed may have
been applied in part, so a repeat is not tried again, but told the same error.
"""

from __future__ import annotations

from psrt.core.errors import PsrtError
from psrt.pserver.decisions.calls import Apply, Fail, Instruction, SendReply, WaitingCall
from psrt.pserver.decisions.dedupe import AdmittedPushes

_Name = tuple[int, int, int]  # trainer, incarnation, sequence

MOST_STEPS = 1 << 32
"""Mini-batches that one push may stand for: far more than a trainer makes between two."""

MOST_FAILED = 1 << 10
"""Pushes whose error is remembered, the latest of all trainers: one repeats a push soon or never,
and most end with the first error."""

_LAST_STEP = (1 << 64) - 1


class Pushes:
    """`step` counts the mini-batches that the pushes admitted so far stand for."""

    def __init__(self) -> None:
        self.step = 0
        self._admitted = AdmittedPushes()
        self._under_way: dict[_Name, list[WaitingCall]] = {}
        self._failed: dict[_Name, PsrtError] = {}

    def arrive(self, call: WaitingCall, steps: int) -> list[Instruction]:
        """A push of a running trainer's current process; it stands for `steps` mini-batches."""
        if self._admitted.admit(call.trainer, *call.key):
            self._under_way[call.trainer, *call.key] = [call]
            step, self.step = self.step, min(self.step + steps, _LAST_STEP)
            return [Apply(call, step)]
        name = (call.trainer, *call.key)
        if name in self._under_way:
            self._under_way[name].append(call)
            return []
        if name in self._failed:
            return [Fail(call, self._failed[name].again())]
        return [SendReply(call, repeated=True)]

    def applied(self, call: WaitingCall, error: PsrtError | None = None) -> list[Instruction]:
        """The `Apply` of `call` has been executed, or ended with `error`."""
        name = (call.trainer, *call.key)
        calls = self._under_way.pop(name)
        if error is not None:
            self._remember(name, error)
            return [Fail(waiting, error) for waiting in calls]
        return [SendReply(waiting, repeated=waiting is not call) for waiting in calls]

    def _remember(self, name: _Name, error: PsrtError) -> None:
        self._failed[name] = error.again()
        if len(self._failed) > MOST_FAILED:
            del self._failed[next(iter(self._failed))]
