"""Cases of damage: each byte of a file in turn is changed, removed, or the last one."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

CaseT = TypeVar("CaseT")

FLIPPED, ZEROED, REMOVED, CUT = "flipped", "zeroed", "removed", "cut"


@dataclass(frozen=True)
class Case:
    """One kind of damage at byte `at` of a file."""

    name: str
    at: int
    damage: str

    def applied(self, data: bytes) -> bytes:
        """The contents after the damage; the same if the byte was zero and is zeroed."""
        head, byte, rest = data[: self.at], data[self.at], data[self.at + 1 :]
        if self.damage == CUT:
            return head
        if self.damage == REMOVED:
            return head + rest
        changed = 0 if self.damage == ZEROED else byte ^ 1 << (self.at % 8)
        return head + bytes([changed]) + rest


def cases_of(name: str, data: bytes) -> Iterator[Case]:
    """All cases that change a file."""
    for at, byte in enumerate(data):
        yield Case(name, at, FLIPPED)
        yield Case(name, at, REMOVED)
        yield Case(name, at, CUT)
        if byte:
            yield Case(name, at, ZEROED)


def some_of(cases: Sequence[CaseT], count: int, seed: int) -> list[CaseT]:
    """`count` of the cases; all if there are fewer."""
    if count >= len(cases):
        return list(cases)
    return random.Random(f"damage {seed}").sample(cases, count)
