"""Does what the machine decides: its lock, its clock, its deadlines, the waiting calls.

Handler threads call `decide` with an event; one thread of the shell's own ends waits that are over.
The lock is held for decisions only. The thread whose event completes a round, or brings a push to
be applied on arrival, applies it; calls that wait for another thread wait as futures and build
their replies on their own threads.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar

from psrt.core.clock import Clock
from psrt.core.errors import ErrorCode, InternalError, PsrtError, TableError, UnavailableError
from psrt.core.threads import CrashReport, start_thread
from psrt.pserver.decisions import Apply, Close, Fail, Instruction, PserverState, SendReply, Warn
from psrt.pserver.serving.parts import Push, RequestParts
from psrt.pserver.serving.updates import apply_now, close_round
from psrt.pserver.tables import Meters
from psrt.rpc.serving import Later
from psrt.rpc.wire import Message

log = logging.getLogger("psrt.pserver")

_LONGEST_SLEEP_S = 3600.0
_NAMES_SHOWN = 4
_IN_PART = "A part of it may have been applied."

_T = TypeVar("_T")


class PendingCall:
    """The content of a `Call`: what to apply, and whom to wake.

    `steps` is 0 for a trainer that only keeps the others company: it has no gradient to average.
    Most calls are answered by the thread that brought them, so a future is made only for those that
    are not: it takes longer than all else that a small push waits for.
    """

    def __init__(self, parts: RequestParts | None = None, steps: int = 0) -> None:
        self.parts = RequestParts() if parts is None else parts
        self.steps = steps
        self._lock = threading.Lock()
        self._is_answered = False
        self._error: PsrtError | None = None
        self._future: Future[None] | None = None

    @property
    def contributes(self) -> bool:
        """A step may well touch nothing that this pserver holds."""
        return self.steps > 0 or bool(self.parts.pushes)

    def answer(self, error: PsrtError | None = None) -> None:
        """What the call waited for has happened, or will not, because of `error`; once."""
        with self._lock:
            self._is_answered, self._error = True, error
        if self._future is None:
            return
        if error is None:
            self._future.set_result(None)
        else:
            self._future.set_exception(error)

    def reply(self, finish: Callable[[], Message]) -> Message | Later:
        """What `finish` builds once the call is answered, now if it is; raises its error."""
        with self._lock:
            if not self._is_answered:
                self._future = Future()
                return Later(self._future, finish)
        if self._error is not None:
            raise self._error
        return finish()


class EffectRunner:
    """`on_end(error)` is called once: when all trainers completed (None), the job was aborted, or
    its last trainers were lost."""

    def __init__(
        self,
        machine: PserverState,
        meters: Meters,
        clock: Clock,
        on_end: Callable[[PsrtError | None], None],
    ) -> None:
        self._machine = machine
        self._meters = meters
        self._clock = clock
        self._on_end: Callable[[PsrtError | None], None] | None = on_end
        self._lock = threading.Lock()  # guards the machine
        self._changed = threading.Condition(self._lock)
        self._stopped = False
        self._wakes_s = math.inf  # when the deadline thread looks again by itself

    def start(self, crashes: CrashReport) -> None:
        """Begin to watch deadlines; the thread ends with `stop`."""
        start_thread(self._watch_deadlines, "deadlines", crashes)

    def stop(self) -> None:
        """End all waits; a round that will not close any more hands its pushes back."""
        error = UnavailableError(
            "the pserver is shutting down; the wait was ended, an open round is not applied.",
            code=ErrorCode.STOPPING,
        )
        with self._lock:
            self._stopped, self._on_end = True, None
            instructions = self._machine.abort(error)
            self._changed.notify_all()
        self._obey(instructions)

    def ask(self, question: Callable[[PserverState, float], _T]) -> _T:
        """`question(machine, now)` under the lock."""
        with self._lock:
            return question(self._machine, self._clock.now())

    def decide(self, event: Callable[[PserverState, float], list[Instruction]]) -> None:
        """Hand `event(machine, now)` to the machine and do what it says."""
        with self._lock:
            instructions = event(self._machine, self._clock.now())
            deadline_s = self._machine.next_deadline()
            if deadline_s is not None and deadline_s < self._wakes_s:
                self._changed.notify_all()
        self._obey(instructions)
        self._report_end()

    def expire(self) -> None:
        """End the waits that are over; the deadline thread calls it, and tests with their clock."""
        self.decide(lambda machine, now: machine.expire(now))

    # --- doing -------------------------------------------------------------------------------

    def _obey(self, instructions: Sequence[Instruction]) -> None:
        for instruction in instructions:
            match instruction:
                case Close():
                    self._obey(self._close(instruction))
                case Apply():
                    self._obey(self._apply(instruction))
                case SendReply(call, repeated):
                    if repeated:
                        self._meters.repeats.add()
                    call.content.answer()
                case Fail(call, error):
                    call.content.answer(error)
                case Warn(text):
                    log.warning("%s", text)

    def _close(self, close: Close) -> list[Instruction]:
        contents: list[PendingCall] = [call.content for call in close.pushes]
        pushes = [content.parts.pushes for content in contents if content.contributes]
        try:
            close_round(pushes, close.round, self._meters)
        except Exception as error:  # tables may hold half a round, so the job must end
            broken = _unfinished(f"round {close.round}", pushes, error)
            with self._lock:
                return self._machine.abort(broken, closing=close.section)
        with self._lock:
            return self._machine.closed(close.section)

    def _apply(self, apply: Apply) -> list[Instruction]:
        call, broken = apply.call, None
        try:
            apply_now(call.content.parts.pushes, apply.step, call.trainer, self._meters)
        except Exception as error:  # this trainer cannot know what was applied
            what = f"the push of trainer {call.trainer}"
            broken = _unfinished(what, [call.content.parts.pushes], error)
        with self._lock:
            return self._machine.applied(call, broken)

    def _report_end(self) -> None:
        with self._lock:
            error = self._machine.aborted or self._machine.lost
            if self._on_end is None or not (error or self._machine.members.ended()):
                return
            on_end, self._on_end = self._on_end, None
        on_end(error)

    def _watch_deadlines(self) -> None:
        while True:
            with self._lock:
                if self._stopped:
                    return
                deadline_s = self._machine.next_deadline()
                left_s = math.inf if deadline_s is None else deadline_s - self._clock.now()
                if left_s > 0:
                    self._wakes_s = math.inf if deadline_s is None else deadline_s
                    self._changed.wait(min(left_s, _LONGEST_SLEEP_S))
                    continue
            self.expire()


def _unfinished(what: str, pushes: Sequence[Sequence[Push]], error: Exception) -> PsrtError:
    """What those who wait for `pushes` to be applied are told of `error`; the log has it too."""
    what = f"{what} could not be applied to {_names(pushes)}"
    if isinstance(error, MemoryError):
        told: PsrtError = TableError(
            f"{what}: there is no memory ({str(error) or 'none is left'}). {_IN_PART}",
            code=ErrorCode.TABLE_FULL,
            hint="Give the job more pservers, or the host of this one more memory.",
        )
    elif isinstance(error, PsrtError):
        told = type(error)(f"{what}: {error.message} {_IN_PART}", code=error.code, hint=error.hint)
    else:
        told = InternalError(f"{what}: {error!r}.")
    log.error("%s", told, exc_info=error if isinstance(told, InternalError) else None)
    return told


def _names(pushes: Sequence[Sequence[Push]]) -> str:
    names = sorted({push.table.spec.name for of_call in pushes for push in of_call})
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return f"{', '.join(map(repr, names[:_NAMES_SHOWN]))}{more}" if names else "no table"
