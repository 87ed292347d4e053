"""Calls that wait for tables which are being filled; pure except for their futures."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from concurrent.futures import Future

from psrt.core.errors import ErrorCode, PsrtError, UnavailableError


class _TableWait:
    """One call: the tables that it still waits for."""

    def __init__(self, tables: Collection[str], deadline_s: float) -> None:
        self.future: Future[None] = Future()
        self.tables, self.deadline_s = set(tables), deadline_s


class LoadWaits:
    """All waiting calls; the caller owns the lock and resolves what it is handed."""

    def __init__(self) -> None:
        self._waits: list[_TableWait] = []

    def __len__(self) -> int:
        return len(self._waits)

    @property
    def next_deadline(self) -> float:
        """The earliest deadline, ∞ = none."""
        return min((wait.deadline_s for wait in self._waits), default=math.inf)

    def add(self, tables: Collection[str], deadline_s: float) -> Future[None]:
        """A future that is resolved when all of these tables are complete."""
        wait = _TableWait(tables, deadline_s)
        self._waits.append(wait)
        return wait.future

    def filled(self, table: str) -> list[Future[None]]:
        """The calls that waited for this table last."""
        for wait in self._waits:
            wait.tables.discard(table)
        return self._taken([wait for wait in self._waits if not wait.tables])

    def late(self, now: float) -> list[tuple[Future[None], list[str]]]:
        """The calls whose deadline has passed, with the tables that they waited for."""
        found = [wait for wait in self._waits if wait.deadline_s <= now]
        names = [sorted(wait.tables) for wait in found]
        return list(zip(self._taken(found), names, strict=True))

    def all(self) -> list[Future[None]]:
        """All calls; none waits any longer."""
        return self._taken(list(self._waits))

    def _taken(self, waits: list[_TableWait]) -> list[Future[None]]:
        for wait in waits:
            self._waits.remove(wait)
        return [wait.future for wait in waits]


def still_loading(tables: Collection[str], percents: Mapping[str, int]) -> PsrtError:
    """The error of a call whose deadline has passed; callers try again."""
    names = ", ".join(f"{name!r} ({percents.get(name, 0)} %)" for name in tables)
    return UnavailableError(
        f"the pserver loads table {names} from a cut; the call waited as long as it could.",
        code=ErrorCode.RECOVERING,
        hint="Raise call_timeout_s if tables take longer to load; STATUS has their progress.",
    )
