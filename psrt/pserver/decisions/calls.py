"""Calls that wait, and what the deciding classes say to do about them.

`rounds`, `pushes` and `clocks` take events and give instructions; the shell executes these. A call
is answered or failed exactly once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from psrt.core.errors import PsrtError


@dataclass(frozen=True, eq=False)
class WaitingCall:
    """One EXCHANGE, PUSH or MEET that waits. `content` is opaque here: the shell's own.

    `round` is None when the caller leaves it to the pserver; a MEET has sequence 0. `section` is
    that of the tables an EXCHANGE is about.
    """

    trainer: int
    incarnation: int
    sequence: int
    deadline_s: float
    round: int | None = None
    content: Any = None
    section: int = 0

    @property
    def key(self) -> tuple[int, int]:
        """Names a push among those of its trainer."""
        return self.incarnation, self.sequence


@dataclass(frozen=True)
class Close:
    """Apply these pushes, in this (trainer) order, then report `closed`."""

    round: int
    pushes: tuple[WaitingCall, ...]

    @property
    def section(self) -> int:
        """That of all the pushes."""
        return self.pushes[0].section


@dataclass(frozen=True)
class Apply:
    """Apply this push as the mini-batches from `step` of all trainers on, then report `applied`."""

    call: WaitingCall
    step: int


@dataclass(frozen=True)
class SendReply:
    """What this call waited for has happened: send its reply.

    `repeated` says that its push came in by another call.
    """

    call: WaitingCall
    repeated: bool = False


@dataclass(frozen=True)
class Fail:
    """Send this error to the call."""

    call: WaitingCall
    error: PsrtError


@dataclass(frozen=True)
class Warn:
    """Tell the log."""

    text: str


Instruction: TypeAlias = Close | Apply | SendReply | Fail | Warn
