"""The course of the validations of a training up to a step, as cuts and states have it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from psrt.core.errors import DataError


@dataclass(frozen=True)
class Validated:
    """The validations up to step `step`: the numbers of the `best` one, None = there is none, and
    how many in a row have `waited` for a better one since."""

    step: int
    waited: int
    best: Mapping[str, Any] | None = None

    def plain(self) -> dict[str, Any]:
        """JSON for `of`."""
        return asdict(self)

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self | None:
        """The course in a state, None if that has none; raises `DataError` for another form."""
        if not plain:
            return None
        try:
            best = plain["best"]
            return cls(int(plain["step"]), int(plain["waited"]), best and dict(best))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"the validations of an earlier process cannot be read: {plain!r}. Nothing was "
                "trained.",
                hint="Resume an earlier cut: `psrt checkpoint list DIR` shows them.",
            ) from error

    def has_ended(self, patience: int) -> bool:
        """Return True if a training of this patience ends here; 0 = it never does."""
        return 0 < patience <= self.waited
