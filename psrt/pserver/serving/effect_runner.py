"""Executes the instructions of `PserverState`: its lock, clock and deadlines, and the waiting
calls.

Handler threads call `decide` with an event; a thread of the runner ends waits whose deadline has
passed. The lock is held for decisions, and while a cut freezes the tables. The thread whose event
completes a round, or brings a push to apply on arrival, applies it. Calls that wait for another
thread wait as futures and build their replies on their own threads.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar

from psrt.core.clock import Clock
from psrt.core.errors import ErrorCode, JobError, PsrtError, UnavailableError
from psrt.core.failpoints import reach
from psrt.core.threads import CrashReport, start_thread
from psrt.core.tracing import span
from psrt.pserver.decisions import (
    Apply,
    Close,
    Fail,
    Forget,
    Freeze,
    Instruction,
    NoPart,
    PserverState,
    SendReply,
    Warn,
    is_between_updates,
)
from psrt.pserver.serving.parts import RequestParts
from psrt.pserver.serving.unfinished_updates import unfinished
from psrt.pserver.serving.updates import apply_now, close_round
from psrt.pserver.tables import Meters
from psrt.rpc.serving import Later
from psrt.rpc.wire import Message

log = logging.getLogger("psrt.pserver")

_LONGEST_SLEEP_S = 3600.0

_T = TypeVar("_T")


class PendingReply:
    """The content of a `WaitingCall`: the parts to apply, and the reply that waits for it.

    `steps` is 0 for a trainer that takes part in a round without a gradient to average. `position`
    is where a trainer goes on that takes part in a cut. Most calls
    are resolved by the thread that brought them, so only the others get a future: to make one takes
    longer than all else that a small push waits for.
    """

    def __init__(
        self, parts: RequestParts | None = None, steps: int = 0, position: str = ""
    ) -> None:
        self.parts = RequestParts() if parts is None else parts
        self.steps, self.position = steps, position
        self._lock = threading.Lock()
        self._is_resolved = False
        self._error: PsrtError | None = None
        self._future: Future[None] | None = None

    @property
    def contributes(self) -> bool:
        """Return True if the trainer has a gradient, be it for tables of other pservers only."""
        return self.steps > 0 or bool(self.parts.pushes)

    def resolve(self, error: PsrtError | None = None) -> bool:
        """Let the call have its reply, or fail with `error`; called once.

        Returns True if the call waits; otherwise it is still being handled.
        """
        with self._lock:
            self._is_resolved, self._error = True, error
        if self._future is None:
            return False
        if error is None:
            self._future.set_result(None)
        else:
            self._future.set_exception(error)
        return True

    def reply(self, finish: Callable[[], Message]) -> Message | Later:
        """The message that `finish` builds, at once or when resolved; raises the call's error."""
        with self._lock:
            if not self._is_resolved:
                self._future = Future()
                return Later(self._future, finish)
        if self._error is not None:
            raise self._error.again()
        return finish()


def cannot_freeze(freeze: Freeze, state: PserverState) -> None:
    """Refuse a cut at a pserver without a directory for it."""
    raise JobError("this pserver has no directory of checkpoints.")


def reports_to_nobody(number: int, why: str) -> None:
    """Ignore that there is no part of a cut, at a pserver without a directory for it."""


class EffectRunner:
    """Passes events to a `PserverState` and executes its instructions.

    `on_end(error)` is called once: when all trainers completed (None), the job was aborted, or its
    last trainers were lost. `forget` drops what is kept for a lost trainer.
    `freeze(instruction, state)` freezes the tables for a cut, or raises. `on_completed` is called
    with the lock held, each time that no trainer is left that has not completed; again later if it
    returns False.
    `no_part(number, why)` starts to report a cut that this pserver has given up.
    """

    def __init__(
        self,
        state: PserverState,
        meters: Meters,
        clock: Clock,
        on_end: Callable[[PsrtError | None], None],
        forget: Callable[[int], None],
        freeze: Callable[[Freeze, PserverState], None] = cannot_freeze,
        on_completed: Callable[[], bool] = lambda: True,
        no_part: Callable[[int, str], None] = reports_to_nobody,
    ) -> None:
        self._state, self._forget, self._freeze_tables = state, forget, freeze
        self._report_no_part = no_part
        self._meters = meters
        self._clock = clock
        self._on_end: Callable[[PsrtError | None], None] | None = on_end
        self._on_completed, self._have_completed = on_completed, False
        self._lock = threading.Lock()  # guards the state
        self._changed = threading.Condition(self._lock)
        self._stopped = False
        self._wakes_s = math.inf  # when the deadline thread wakes by itself
        self._is_paused = False

    def start(self, crashes: CrashReport) -> None:
        """Start the deadline thread, which ends with `stop`."""
        start_thread(self._watch_deadlines, "deadlines", crashes)

    def stop(self) -> None:
        """End all waits; the pushes of an open round are handed back."""
        error = UnavailableError(
            "the pserver is shutting down; the wait was ended, an open round is not applied.",
            code=ErrorCode.STOPPING,
            hint="See the end of its log for the reason.",
        )
        with self._lock:
            self._stopped, self._on_end = True, None
            instructions = self._state.abort(error)
            self._changed.notify_all()
        self._execute(instructions)

    def ask(self, question: Callable[[PserverState, float], _T]) -> _T:
        """`question(state, now)` under the lock."""
        with self._lock:
            return question(self._state, self._clock.now())

    def between_updates(self, question: Callable[[PserverState, float], _T]) -> _T:
        """`question(state, now)` under the lock while no push is being applied.

        Those under way end first; events that come meanwhile wait. One thread calls this.
        """
        with self._lock:
            self._is_paused = True
            try:
                self._changed.wait_for(lambda: is_between_updates(self._state))
                return question(self._state, self._clock.now())
            finally:
                self._is_paused = False
                self._changed.notify_all()

    def decide(self, event: Callable[[PserverState, float], list[Instruction]]) -> None:
        """Run `event(state, now)` under the lock, then execute the instructions it returns."""
        with span("admit"), self._lock:
            if self._is_paused:
                self._changed.wait_for(lambda: not self._is_paused)
            instructions = self._frozen(event(self._state, self._clock.now()))
            deadline_s = self._state.next_deadline()
            if deadline_s is not None and deadline_s < self._wakes_s:
                self._changed.notify_all()
        self._execute(instructions)
        self._report_end()

    def expire(self) -> None:
        """End the waits whose deadline has passed; called by the deadline thread and by tests."""
        self.decide(lambda state, now: state.expire(now))

    # --- execution ---------------------------------------------------------------------------

    def _execute(self, instructions: Sequence[Instruction]) -> None:
        for instruction in instructions:
            match instruction:
                case Close():
                    self._execute(self._close(instruction))
                case Apply():
                    self._execute(self._apply(instruction))
                case SendReply(call, repeated):
                    if repeated:
                        self._meters.repeats.add()
                    call.content.resolve()
                case Fail(call, error):
                    if call.content.resolve(error):
                        self._meters.refuse(error, call.trainer)
                case Forget(trainer):
                    self._forget(trainer)
                case NoPart(number, why):
                    self._report_no_part(number, why)
                case Warn(text):
                    log.warning("%s", text)

    def _close(self, close: Close) -> list[Instruction]:
        contents: list[PendingReply] = [call.content for call in close.pushes]
        pushes = [content.parts.pushes for content in contents if content.contributes]
        try:
            reach("push.before_apply")
            close_round(pushes, close.round, self._meters)
            reach("push.after_apply")
        except Exception as error:  # tables may hold half a round, so the job must end
            failure = unfinished(f"round {close.round}", pushes, error)
            with self._lock:
                self._resume_paused()
                return self._state.abort(failure, closing=close.bucket)
        with self._lock:
            self._resume_paused()
            return self._state.closed(close.bucket, close.round)

    def _apply(self, apply: Apply) -> list[Instruction]:
        call, failure = apply.call, None
        try:
            reach("push.before_apply")
            apply_now(call.content.parts.pushes, apply.step, call.trainer, self._meters)
            reach("push.after_apply")
        except Exception as error:  # the trainer has no record of what was applied
            subject = f"the push of trainer {call.trainer}"
            failure = unfinished(subject, [call.content.parts.pushes], error)
        with self._lock:
            self._resume_paused()
            return self._state.applied(call, failure)

    def _resume_paused(self) -> None:
        """Wake the thread that waits for the end of updates; it runs when the lock is free."""
        if self._is_paused:
            self._changed.notify_all()

    def _frozen(self, instructions: list[Instruction]) -> list[Instruction]:
        """Execute a `Freeze` among instructions, with the lock held: no push comes in between."""
        answered: list[Instruction] = []
        for instruction in instructions:
            if isinstance(instruction, Freeze):
                answered += self._freeze(instruction)
            else:
                answered.append(instruction)
        return answered

    def _freeze(self, freeze: Freeze) -> list[Instruction]:
        try:
            self._freeze_tables(freeze, self._state)
        except Exception as error:
            defect = None if isinstance(error, PsrtError) else error
            log.warning("cut %d could not begin: %s", freeze.number, error, exc_info=defect)
            return self._state.cuts.give_up(str(error))
        return self._state.frozen()

    def _report_end(self) -> None:
        with self._lock:
            error, has_ended = self._state.aborted or self._state.lost, self._state.has_ended
            had_completed, self._have_completed = self._have_completed, self._state.members.ended()
            if self._have_completed and not (had_completed or error or self._stopped):
                self._have_completed = self._on_completed()
            if self._on_end is None or not (error or has_ended):
                return
            on_end, self._on_end = self._on_end, None
        on_end(error)

    def _watch_deadlines(self) -> None:
        while True:
            with self._lock:
                if self._stopped:
                    return
                deadline_s = self._state.next_deadline()
                left_s = math.inf if deadline_s is None else deadline_s - self._clock.now()
                if left_s > 0:
                    self._wakes_s = math.inf if deadline_s is None else deadline_s
                    self._changed.wait(min(left_s, _LONGEST_SLEEP_S))
                    continue
            self.expire()
