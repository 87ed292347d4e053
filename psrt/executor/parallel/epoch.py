"""Counts of a run until the data end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class EpochResult:
    """Batches and examples run until the data ended; `fetched` are the values of the last batch."""

    batches: int = 0
    examples: int = 0
    fetched: list[Any] = field(default_factory=list)

    def count(self, examples: int, fetched: list[Any]) -> None:
        self.batches += 1
        self.examples += examples
        self.fetched = fetched
