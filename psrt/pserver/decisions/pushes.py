"""Asynchronous pushes as pure decisions: each is applied once, and repeats wait for that.

    new ──arrive──▶ APPLYING (an `Apply` is being executed) ──applied──▶ APPLIED
                                                            ──error───▶ FAILED

A repeat of a push that is being applied gets its reply together with it, so every reply means
"applied": the trainer reads its own writes, and its clock runs no faster than its gradients. A push
that failed may have been applied in part, so a repeat gets the original error and no second try.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psrt.core.errors import PsrtError, WireError
from psrt.pserver.decisions.calls import Apply, Fail, Instruction, SendReply, WaitingCall
from psrt.pserver.decisions.dedupe import AdmittedPushes
from psrt.pserver.decisions.lineages import Lineages

_Name = tuple[int, int, int]  # trainer, incarnation, sequence

MOST_STEPS = 1 << 32
"""Mini-batches that one push may cover: far more than a trainer runs between two."""

MOST_FAILED = 1 << 10
"""Pushes whose error is kept, the latest of all trainers: a trainer repeats a push soon or never,
and most trainers end with the first error."""

_LAST_STEP = (1 << 64) - 1


class Pushes:
    """Pushes by key; `step` counts the mini-batches that the `admitted` ones cover."""

    def __init__(self, first_step: int = 0) -> None:
        self.step = first_step
        self.admitted = AdmittedPushes()
        self._applying: dict[_Name, list[WaitingCall]] = {}
        self._failed: dict[_Name, PsrtError] = {}

    @property
    def is_applying(self) -> bool:
        """True while a push is being applied."""
        return bool(self._applying)

    def arrive(self, call: WaitingCall, steps: int, lineages: Lineages) -> list[Instruction]:
        """Admit a push of a running trainer's current process that covers `steps` mini-batches.

        The progress of its trainer is recorded in `lineages`.
        """
        if self.admitted.admit(call.trainer, *call.key):
            lineages.record(call.trainer, call.progress)
            self._applying[call.trainer, *call.key] = [call]
            step, self.step = self.step, min(self.step + steps, _LAST_STEP)
            return [Apply(call, step)]
        name = (call.trainer, *call.key)
        if name in self._applying:
            self._applying[name].append(call)
            return []
        if name in self._failed:
            return [Fail(call, self._failed[name].again())]
        return [SendReply(call, repeated=True)]

    def applied(self, call: WaitingCall, error: PsrtError | None = None) -> list[Instruction]:
        """Record that the `Apply` of `call` was executed, or ended with `error`."""
        name = (call.trainer, *call.key)
        calls = self._applying.pop(name)
        if error is not None:
            self._keep(name, error)
            return [Fail(waiting, error) for waiting in calls]
        return [SendReply(waiting, repeated=waiting is not call) for waiting in calls]

    def dump(self) -> dict[str, Any]:
        """Counted mini-batches and admitted keys as JSON, while no push is being applied."""
        assert not self._applying, "a cut is frozen between pushes"
        return {"step": self.step, "admitted": self.admitted.dump()}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue with the result of `dump`."""
        self.step = saved["step"]
        self.admitted.restore(saved["admitted"])

    def _keep(self, name: _Name, error: PsrtError) -> None:
        self._failed[name] = error.again()
        if len(self._failed) > MOST_FAILED:
            del self._failed[next(iter(self._failed))]


def check_steps(trainer: int, steps: int) -> None:
    """Raise `WireError` if a push of `trainer` covers more than `MOST_STEPS` mini-batches."""
    if steps > MOST_STEPS:
        raise WireError(
            f"a push of trainer {trainer} covers {steps:,} mini-batches; it was refused.",
            hint=f"Header.step of a PUSH counts those since the last one, {MOST_STEPS:,} at most.",
        )
