"""Chains of parts: the cut that the next part of one pserver continues, as pure decisions.

A full part has whole tables; an incremental one has what changed since the cut that it continues,
its base. A base must be the newest complete cut, as that is the one that no retention deletes:

    what became of the last part    the next part
    its cut is complete             continues that cut, unless the chain is long enough
    its cut was given up            continues what the last one continued
    unknown                         is full

A process begins with a full part, also after a restart or a resume. A table that the base does not
have is whole in an incremental part, too.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass


class PartOutcome(enum.Enum):
    """End of a part that was written."""

    COMPLETE = "its cut is complete"
    GIVEN_UP = "its cut was given up"
    UNKNOWN = "the coordinator did not answer"


@dataclass(frozen=True)
class Continuation:
    """The cut `base` that a part continues, 0 = none, and the tables of which it has changes."""

    base: int = 0
    deltas: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Link:
    """A part: its cut, its place in its chain from 1, its tables."""

    number: int = 0
    place: int = 0
    tables: frozenset[str] = frozenset()


class PartChain:
    """The parts of one process of a pserver; each chain has at most `full_every` ≥ 1 of them."""

    def __init__(self, full_every: int) -> None:
        self._full_every = full_every
        self._last = _Link()  # of the newest cut that is complete for certain
        self._open: _Link | None = None  # of a cut under way

    @property
    def has_deltas(self) -> bool:
        return self._full_every > 1

    def begin(self, number: int, tables: Iterable[str]) -> Continuation:
        """Begin the part of cut `number`, which has these tables."""
        names = frozenset(tables)
        if self._open is not None:
            self._last = _Link()  # the cut of the part before may be complete or not
        last = self._last
        deltas = names & last.tables if last.place < self._full_every else frozenset[str]()
        self._open = _Link(number, last.place + 1 if deltas else 1, names)
        return Continuation(last.number, deltas) if deltas else Continuation()

    def end(self, number: int, outcome: PartOutcome) -> None:
        """Record what became of a part; that of a part before the present one changes nothing."""
        if self._open is None or self._open.number != number:
            return
        if outcome is PartOutcome.COMPLETE:
            self._last = self._open
        elif outcome is PartOutcome.UNKNOWN:
            self._last = _Link()
        self._open = None
