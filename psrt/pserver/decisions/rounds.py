"""Synchronous rounds as pure decisions: (event, now) → instructions.

A round opens with its first push and closes when every awaited trainer has pushed. The effect
runner executes its `Close`; `closed` then answers all its calls and opens the next round.

    OPEN ──last awaited push, COMPLETE, or loss under `shrink`──▶ CLOSING ──closed()──▶ OPEN (+1)

A push is identified by its key (trainer, incarnation, sequence) and belongs to the round that is
open when it arrives; a round number in the call is only checked. Every retry of a push is one more
*call* that waits for its round. The newest call owns the push, whose buffers live as long as that
call waits: when it expires, the push is withdrawn. Invariants (`check`):
  a trainer has a push ⇔ it has a waiting call; all its calls carry one key, the last owns the push;
  CLOSING ⇒ there is a push; `deadline` is set ⇔ OPEN and there is a push.

There are two deadlines. That of a call fails this call only; that of the round (`wait_timeout_s`
after its first push) handles the missing trainers as `on_trainer_loss` demands.
"""

from __future__ import annotations

from psrt.core.errors import (
    DeadlineError,
    ErrorCode,
    JobError,
    PsrtError,
    UnavailableError,
    WireError,
)
from psrt.pserver.decisions.calls import Close, Fail, Instruction, SendReply, WaitingCall, Warn
from psrt.pserver.decisions.job_identity import check_reduces
from psrt.pserver.decisions.membership import Membership, came_back


class Rounds:
    """The rounds of one job on one pserver; see the module docstring for the states."""

    def __init__(
        self, members: Membership, on_trainer_loss: str, wait_timeout_s: float, first_round: int = 0
    ) -> None:
        self.open = first_round
        self.closing = False
        self.aborted: PsrtError | None = None
        self.deadline_s: float | None = None
        self._opened_s = 0.0
        self._members = members
        self._policy = on_trainer_loss
        self._wait_timeout_s = wait_timeout_s
        self._calls: dict[int, list[WaitingCall]] = {}
        self.last_applied: dict[int, tuple[int, int]] = {}

    # --- events ------------------------------------------------------------------------------

    def arrive(self, call: WaitingCall, now: float) -> list[Instruction]:
        """Add a push of a running trainer's current process; raises if it fits no round."""
        if self._was_applied(call):
            return [SendReply(call, repeated=True)]  # a retry whose first reply was lost
        self._check_fits(call)
        if not self._calls:
            self._opened_s, self.deadline_s = now, now + self._wait_timeout_s
        self._calls.setdefault(call.trainer, []).append(call)
        return self.close_if_complete()

    def close_if_complete(self) -> list[Instruction]:
        """Close the round if it waits for no trainer; call it after one may have left."""
        if self.closing or not self._calls:
            return []
        if any(trainer not in self._calls for trainer in self._members.awaited()):
            return []
        self.closing, self.deadline_s = True, None
        pushes = tuple(self._calls[trainer][-1] for trainer in sorted(self._calls))
        for push in pushes:
            self._members.lineages.record(push.trainer, push.progress)
        return [Close(self.open, pushes)]

    def closed(self) -> list[Instruction]:
        """Record that the round's updates are in the tables."""
        answers: list[Instruction] = [
            SendReply(call, repeated=call is not calls[-1])
            for calls in self._calls.values()
            for call in calls
        ]
        self.last_applied |= {trainer: calls[-1].key for trainer, calls in self._calls.items()}
        self._calls.clear()
        self.closing = False
        self.open += 1
        return answers

    def replaced(self, trainer: int) -> list[Instruction]:
        """Record a new process of `trainer` whose former one had not completed."""
        if self._policy == "abort":
            return self.abort(came_back(trainer, "the job was aborted"))
        dropped = f"its push for round {self.open} was dropped"
        return [] if self.closing else self._withdraw(trainer, came_back(trainer, dropped))

    def expire(self, now: float) -> list[Instruction]:
        """End the waits whose deadline has passed."""
        if self.closing:
            return []
        instructions = self._expire_round(now) if self._round_is_due(now) else []
        if any(isinstance(instruction, Close) for instruction in instructions):
            return instructions  # the round goes on without the missing
        for calls in list(self._calls.values()):
            instructions += self._expire_calls(calls, now)
        return instructions

    def next_deadline(self) -> float | None:
        """The earliest time at which `expire` has something to do."""
        if self.closing or self.deadline_s is None:
            return None
        return min(
            [self.deadline_s, *(c.deadline_s for calls in self._calls.values() for c in calls)]
        )

    def abort(self, error: PsrtError, *, closing: bool = False) -> list[Instruction]:
        """End the job with `error`.

        The calls of a round that is being applied are left to `closed`, unless `closing` gives that
        round up.
        """
        self.aborted = error
        if self.closing and not closing:
            return []
        self.closing = False
        return [fail for trainer in list(self._calls) for fail in self._withdraw(trainer, error)]

    # --- questions ---------------------------------------------------------------------------

    def waiting(self) -> list[int]:
        """The trainers with a push in the open round."""
        return sorted(self._calls)

    def missing(self) -> list[int]:
        """The awaited trainers without a push in the open round."""
        return [trainer for trainer in self._members.awaited() if trainer not in self._calls]

    def check(self) -> None:
        """Assert the invariants; tests call it after every event."""
        keys = [{call.key for call in calls} for calls in self._calls.values()]
        assert all(len(each) == 1 for each in keys), "a trainer has not exactly one push"
        assert not self.closing or self._calls, "an empty round is closing"
        assert (self.deadline_s is not None) == (bool(self._calls) and not self.closing)
        assert not self.aborted or self.closing or not self._calls, "calls wait in an aborted job"

    # --- inside ------------------------------------------------------------------------------

    def _was_applied(self, call: WaitingCall) -> bool:
        incarnation, sequence = self.last_applied.get(call.trainer, (0, 0))
        return call.incarnation == incarnation and call.sequence <= sequence

    def _check_fits(self, call: WaitingCall) -> None:
        """Raise unless `call` is a new push of the open round or a repeat of its own push."""
        others = self._calls.get(call.trainer)
        if others and others[-1].key == call.key:
            return
        if self.closing:
            raise UnavailableError(
                f"round {self.open} is being applied; trainer {call.trainer} may push for the "
                "next, and this push was refused."
            )
        if others:
            raise WireError(
                f"trainer {call.trainer} sent push {call.sequence} while its push "
                f"{others[-1].sequence} waits in round {self.open}; it was refused.",
                code=ErrorCode.JOB_MISMATCH,
                hint="A trainer sends the push of a round when the one before was answered.",
            )
        if call.round is not None and call.round != self.open:
            raise WireError(
                f"trainer {call.trainer} pushed for round {call.round}, but round {self.open} is "
                "open on this pserver; the push was refused.",
                code=ErrorCode.JOB_MISMATCH,
                hint="A trainer that joins late begins at the rounds that STATUS names.",
            )
        check_reduces(call, [each[-1] for each in self._calls.values()])

    def _round_is_due(self, now: float) -> bool:
        return self.deadline_s is not None and self.deadline_s <= now

    def _expire_round(self, now: float) -> list[Instruction]:
        missing = self.missing()
        waited = (
            f"round {self.open} waited {now - self._opened_s:.1f} s for "
            f"{self._members.describe(missing, now)}; "
        )
        if self._policy == "shrink":
            self._members.lose(missing)
            return [Warn(f"{waited}the job goes on without it"), *self.close_if_complete()]
        if self._policy == "abort":
            self._members.lose(missing)
            hint = "See the lost trainer's log, then start the job again."
            return self.abort(
                JobError(f"{waited}the job was aborted.", code=ErrorCode.TRAINER_LOST, hint=hint)
            )
        hint = "Start the missing trainer again, or raise wait_timeout_s."
        error = DeadlineError(f"{waited}the pushes of this round were handed back.", hint=hint)
        return [fail for trainer in list(self._calls) for fail in self._withdraw(trainer, error)]

    def _expire_calls(self, calls: list[WaitingCall], now: float) -> list[Instruction]:
        """`calls` of one trainer; the last one owns the push."""
        trainer = calls[-1].trainer
        error = DeadlineError(
            f"round {self.open} still waits for {self._members.describe(self.missing(), now)} "
            f"at the deadline of trainer {trainer}'s call; its push was handed back.",
            hint="Raise the trainer's call_timeout_s, or see why the others are late.",
        )
        if calls[-1].deadline_s <= now:
            return self._withdraw(trainer, error)
        late = [call for call in calls if call.deadline_s <= now]
        self._calls[trainer] = [call for call in calls if call.deadline_s > now]
        return [Fail(call, error) for call in late]

    def _withdraw(self, trainer: int, error: PsrtError) -> list[Instruction]:
        calls = self._calls.pop(trainer, [])
        if not self._calls:
            self.deadline_s = None
        return [Fail(call, error) for call in calls]
