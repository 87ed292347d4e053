"""The order in which tables are filled; pure.

A table is filled in stages, one after the other: a full freeze, then each delta behind it. The
pages of one stage are independent, so several threads may put them at the same time. A thread takes
the next page of the first table that has one: tables that calls wait for come first, then dense
ones, then those with few pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class NextPage(NamedTuple):
    """Page `number` of stage `stage` of a table."""

    table: str
    stage: int
    number: int


@dataclass
class _Progress:
    """The pages of each stage, and how far the present stage is."""

    pages: Sequence[int]
    is_dense: bool
    stage: int = 0
    taken: int = 0
    put: int = 0

    @property
    def has_next(self) -> bool:
        return self.stage < len(self.pages) and self.taken < self.pages[self.stage]

    @property
    def is_complete(self) -> bool:
        return self.stage == len(self.pages)

    @property
    def percent(self) -> int:
        return 100 * (sum(self.pages[: self.stage]) + self.put) // max(1, sum(self.pages))

    def end_stages(self) -> None:
        """Go on to the next stage that has pages, once all of this one are put."""
        while not self.is_complete and self.put == self.pages[self.stage]:
            self.stage, self.taken, self.put = self.stage + 1, 0, 0


class LoadOrder:
    """The tables that are not complete."""

    def __init__(self) -> None:
        self._tables: dict[str, _Progress] = {}
        self._asked: dict[str, None] = {}

    @property
    def percents(self) -> dict[str, int]:
        """The part of each table's pages that are put, in percent."""
        return {name: table.percent for name, table in self._tables.items()}

    def add(self, name: str, pages: Sequence[int], is_dense: bool) -> bool:
        """Add a table with the number of pages of each stage; True if it has none: it is complete.

        A table that was asked for before comes first.
        """
        table = _Progress(tuple(pages), is_dense)
        table.end_stages()
        if not table.is_complete:
            self._tables[name] = table
        return table.is_complete

    def ask(self, names: Iterable[str]) -> None:
        """Fill these tables before others, in the order of the first calls that ask for them."""
        for name in names:
            self._asked.setdefault(name)

    def take(self) -> NextPage | None:
        """The page to put next; None while other threads put the last ones of all stages."""
        name = min(
            (each for each in self._tables if self._tables[each].has_next),
            key=self._rank,
            default=None,
        )
        if name is None:
            return None
        table = self._tables[name]
        table.taken += 1
        return NextPage(name, table.stage, table.taken - 1)

    def put(self, page: NextPage) -> bool:
        """Record that a page is in its table; True if the table is complete by it."""
        table = self._tables[page.table]
        table.put += 1
        table.end_stages()
        if table.is_complete:
            del self._tables[page.table]
            self._asked.pop(page.table, None)
        return table.is_complete

    def _rank(self, name: str) -> tuple[int, bool, int]:
        table, asked = self._tables[name], list(self._asked)
        place = asked.index(name) if name in self._asked else len(asked)
        return place, not table.is_dense, sum(table.pages)
