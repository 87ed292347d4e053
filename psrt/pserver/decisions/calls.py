"""Calls that wait, and the instructions that end their wait.

`rounds`, `pushes` and `clocks` turn events into instructions; the effect runner executes them. A
call is answered or failed exactly once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from psrt.core.errors import PsrtError
from psrt.pserver.decisions.lineages import PushProgress


@dataclass(frozen=True, eq=False)
class WaitingCall:
    """One EXCHANGE, PUSH or MEET that waits for its reply.

    `content` belongs to the effect runner and is opaque here. `round` is None when the caller
    leaves it to the pserver; a MEET has sequence 0. `bucket` is that of an EXCHANGE. `sums` is True
    if its gradients ask for their sum over trainers, False for the mean, None without gradients.
    """

    trainer: int
    incarnation: int
    sequence: int
    deadline_s: float
    round: int | None = None
    content: Any = None
    bucket: int = 0
    progress: PushProgress | None = None
    sums: bool | None = None

    @property
    def key(self) -> tuple[int, int]:
        """Identifies a push among those of its trainer."""
        return self.incarnation, self.sequence


@dataclass(frozen=True)
class Close:
    """Apply these pushes, in this (trainer) order, then report `closed`."""

    round: int
    pushes: tuple[WaitingCall, ...]

    @property
    def bucket(self) -> int:
        """The bucket of all the pushes."""
        return self.pushes[0].bucket


@dataclass(frozen=True)
class Apply:
    """Apply this push, then report `applied`.

    `step` is the number of mini-batches of all trainers before it.
    """

    call: WaitingCall
    step: int


@dataclass(frozen=True)
class Freeze:
    """Freeze all tables for cut `number`, then report `frozen` or `give_up`.

    `calls` are those of the trainers that take part, in trainer order.
    """

    number: int
    calls: tuple[WaitingCall, ...]


@dataclass(frozen=True)
class NoPart:
    """Report to the coordinator that this pserver has no part of cut `number`."""

    number: int
    why: str


@dataclass(frozen=True)
class SendReply:
    """Send the call its reply; with `repeated`, another call brought its push."""

    call: WaitingCall
    repeated: bool = False


@dataclass(frozen=True)
class Fail:
    """Send the call this error."""

    call: WaitingCall
    error: PsrtError


@dataclass(frozen=True)
class Forget:
    """Drop what tables and caches keep for this trainer, which is lost."""

    trainer: int


@dataclass(frozen=True)
class Warn:
    """Write a warning to the log."""

    text: str


Instruction: TypeAlias = Close | Apply | Freeze | NoPart | SendReply | Fail | Forget | Warn
