"""Retention: the cuts that are kept when a newer one is complete."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Retention:
    """Keep the newest `keep` cuts, and every cut whose number is a multiple of `keep_every`.

    `keep` is at least 1; `keep_every` 0 = none beyond the newest.
    """

    keep: int = 3
    keep_every: int = 0

    def dropped(self, complete: Iterable[int]) -> list[int]:
        """The numbers of complete cuts that may be deleted, oldest first."""
        numbers = sorted(set(complete))
        newest = set(numbers[-self.keep :])
        return [n for n in numbers if n not in newest and not self._is_milestone(n)]

    def _is_milestone(self, number: int) -> bool:
        return self.keep_every > 0 and number % self.keep_every == 0
