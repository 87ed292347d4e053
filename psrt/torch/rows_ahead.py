"""Rows that are read before their lookup, and the lookups that they are for.

A lookup takes rows that were read ahead if they are for exactly its ids; otherwise it reads them
itself. So a wrong guess of `Prefetch` costs time, and changes no result.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

import numpy as np

from psrt.core.types import F32, I32, I64
from psrt.kernels.tables import unique

Rows = Mapping[str, F32]
Wanted = Mapping[str, I64]


class LookupIds(NamedTuple):
    """The distinct ids (n,) of one lookup, and their `positions` (n,) in the ids of its table.

    `positions` is None if the table has no other lookup.
    """

    ids: I64
    positions: I32 | None = None


class BatchLookups(NamedTuple):
    """The lookups of a batch by table: `wanted` are the distinct ids of all of them together."""

    wanted: dict[str, I64]
    lookups: dict[str, list[LookupIds]]

    def found(self, table: str, ids: I64, rows: Rows) -> F32 | None:
        """The rows of a lookup of `ids` (n,), out of those of `wanted`, or None."""
        for each in self.lookups.get(table, ()):
            if np.array_equal(each.ids, ids):
                return rows[table] if each.positions is None else rows[table][each.positions]
        return None


def lookups_of(asked: Iterable[tuple[str, I64]]) -> BatchLookups:
    """The lookups of one batch, pairs of a table and ids (n,) in any order and number."""
    lookups: dict[str, list[LookupIds]] = {}
    for table, ids in asked:
        lookups.setdefault(table, []).append(LookupIds(unique(ids)[0]))
    return _united(lookups)


def joined(batches: Sequence[BatchLookups]) -> BatchLookups:
    """The lookups of several batches as those of one."""
    if len(batches) == 1:
        return batches[0]
    lookups: dict[str, list[LookupIds]] = {}
    for batch in batches:
        for table, own in batch.lookups.items():
            lookups.setdefault(table, []).extend(LookupIds(each.ids) for each in own)
    return _united(lookups)


def _united(lookups: Mapping[str, list[LookupIds]]) -> BatchLookups:
    wanted = {}
    result: dict[str, list[LookupIds]] = {}
    for table, own in lookups.items():
        if len(own) == 1:
            wanted[table], result[table] = own[0].ids, own
            continue
        ids, positions = unique(np.concatenate([each.ids for each in own]))
        ends = np.cumsum([len(each.ids) for each in own])[:-1]
        split = np.split(positions, ends)
        wanted[table] = ids
        result[table] = [LookupIds(each.ids, at) for each, at in zip(own, split, strict=True)]
    return BatchLookups(wanted, result)


class AheadOfLookups(Protocol):
    """Rows of the next lookups, kept by one iteration of `Prefetch`."""

    def find(self, table: str, ids: I64) -> F32 | None:
        """Rows (n, width) of a lookup of the distinct `ids` (n,), or None."""
        ...

    def before_push(self) -> Wanted:
        """Drop rows that the push may change; returns the ids whose rows shall come with it."""
        ...

    def arrived(self, rows: Rows) -> None:
        """Take the rows that came with the push."""
        ...


class RowsAhead:
    """All rows that were read ahead for the tables of a session.

    `calls` is held during each call to the tables, since a thread may read ahead. `used` counts
    lookups by table that found their rows here. Besides `calls`, the training thread uses it alone.
    """

    def __init__(self) -> None:
        self.calls = threading.Lock()
        self.used = 0
        self._kept: list[AheadOfLookups] = []

    @contextmanager
    def keeping(self, ahead: AheadOfLookups) -> Iterator[None]:
        """Let lookups and pushes use `ahead`, the innermost one first."""
        self._kept.append(ahead)
        try:
            yield
        finally:
            self._kept.remove(ahead)

    def find(self, wanted: Wanted) -> dict[str, F32]:
        """The rows of the lookups of distinct ids (n,) by table that are here."""
        if not self._kept:
            return {}
        tried = {table: self._rows_of(table, ids) for table, ids in wanted.items()}
        found = {table: rows for table, rows in tried.items() if rows is not None}
        self.used += len(found)
        return found

    def before_push(self) -> Wanted:
        """Drop rows that a push may change; returns the ids whose rows shall come with it."""
        wanted: Wanted = {}
        for each in self._kept:
            wanted = each.before_push()
        return wanted

    def arrived(self, rows: Rows) -> None:
        """Hand on the rows that came with the push."""
        if self._kept:
            self._kept[-1].arrived(rows)

    def _rows_of(self, table: str, ids: I64) -> F32 | None:
        found = (each.find(table, ids) for each in reversed(self._kept))
        return next((rows for rows in found if rows is not None), None)


__all__ = ["AheadOfLookups", "BatchLookups", "Rows", "RowsAhead", "Wanted", "joined", "lookups_of"]
