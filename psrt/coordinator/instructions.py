"""Instructions of the coordinator: answers to calls, and the end of a cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from psrt.core.errors import PsrtError

Caller: TypeAlias = Any
"""A call that waits; opaque here."""


@dataclass(frozen=True)
class Announce:
    """Answer a WATCH with the proposed cut; see `CutCoordinator.trainers`."""

    call: Caller
    number: int
    trainers: int = 0


@dataclass(frozen=True)
class Commit:
    """Write the manifest of cut `number` from the records of its parts by endpoint, then report
    `committed` or `failed`."""

    number: int
    parts: Mapping[str, str]


@dataclass(frozen=True)
class Discard:
    """Delete what was written for cut `number`."""

    number: int
    why: str


@dataclass(frozen=True)
class Done:
    """Answer a CHECKPOINT or PART: cut `number` is complete, or ended with `error`."""

    call: Caller
    number: int
    error: PsrtError | None = None


CutInstruction: TypeAlias = Announce | Commit | Discard | Done
