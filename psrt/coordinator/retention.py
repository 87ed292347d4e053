"""Retention: the cuts that are kept when a newer one is complete."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Retention:
    """Keep the newest `keep` cuts, and every cut whose number is a multiple of `keep_every`.

    `keep` is at least 1; `keep_every` 0 = none beyond the newest. Cut `in_use` is kept, too, and
    cuts that a kept one builds on.
    """

    keep: int = 3
    keep_every: int = 0
    in_use: int = 0

    def dropped(
        self, complete: Iterable[int], bases: Callable[[int], Iterable[int]] = lambda number: ()
    ) -> list[int]:
        """The numbers of complete cuts that may be deleted, in the order of deletion.

        `bases` returns the cuts that the parts of a cut continue. The newest comes first, so that
        a deletion that ends early leaves no cut without one that it builds on.
        """
        numbers = sorted(set(complete))
        kept = {*numbers[-self.keep :], *filter(self._is_kept, numbers)}
        if len(kept) == len(numbers):
            return []
        needed = closure(kept, bases)
        return [n for n in reversed(numbers) if n not in needed]

    def _is_kept(self, number: int) -> bool:
        return number == self.in_use or (self.keep_every > 0 and number % self.keep_every == 0)


def closure(numbers: Iterable[int], bases: Callable[[int], Iterable[int]]) -> set[int]:
    """These cuts and all that they build on."""
    found: set[int] = set()
    waiting = list(numbers)
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            waiting.extend(bases(number))
    return found
