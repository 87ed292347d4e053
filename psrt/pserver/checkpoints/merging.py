"""A table of a full cut, merged from its full freeze and the deltas behind it.

The newest record of an id wins, and dropped rows vanish. Pages are read newest first and handed out
without those records that a newer freeze has; the memory this takes is that of a page and of the
ids of all deltas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from psrt.core.types import I64, Array
from psrt.pserver.checkpoints.saved_cut import StoredTable, newest_block
from psrt.pserver.frozen import Meta, Page, ids_of
from psrt.storage.failures import damaged

_REPLACED = {"deleted": "rows", "long_deleted": "long_rows"}
"""The records that others delete, by the name of these."""

_NO_KEYS: I64 = np.empty(0, np.int64)


class MergedTable:
    """A table at the newest of `stored`, its full freeze and deltas in order.

    `advance` is called with the bytes of each page that was read.
    """

    def __init__(self, stored: Sequence[StoredTable], advance: Callable[[int], object]) -> None:
        self.meta = _full(stored[-1].facts)
        self._stored, self._advance = stored, advance
        self._is_dense = "rows" not in self.meta

    def pages(self) -> Iterator[Page]:
        """Pages of the full table, each row once; raises `StorageError` if rows are missing."""
        if self._is_dense:
            for table in newest_block(self._stored):
                yield from self._read(table)
            return
        counts = {"rows": 0, "long_rows": 0}
        for page in self._newest_records():
            name = _kind(page)
            counts[name] = counts.get(name, 0) + len(page[name])
            yield page
        self._check(counts["rows"], self.meta)
        if "long" in self.meta:
            self._check(counts["long_rows"], self.meta["long"])

    def _newest_records(self) -> Iterator[Page]:
        newer: dict[str, I64] = {}  # by kind of record, sorted
        for table in reversed(self._stored):
            own: dict[str, list[I64]] = {}
            for page in self._read(table):
                name = _kind(page)
                kind, keys = _REPLACED.get(name, name), _keys(name, page[name])
                if name == kind:
                    yield from _kept(page, name, ~_contains(newer.get(kind, _NO_KEYS), keys))
                if table.facts["kind"] != "full":
                    own.setdefault(kind, []).append(keys)
            for kind, keys_of_pages in own.items():
                newer[kind] = np.unique(np.concatenate([newer.get(kind, _NO_KEYS), *keys_of_pages]))

    def _read(self, table: StoredTable) -> Iterator[Page]:
        for page in table.pages():
            self._advance(sum(array.nbytes for array in page.values()))
            yield page

    def _check(self, rows: int, meta: Meta) -> None:
        if rows != meta["rows"]:
            newest = self._stored[-1].file["name"]
            raise damaged(
                newest, f"table {self.meta['table']!r} has {rows} rows, not {meta['rows']}"
            )


def _full(facts: Meta) -> Meta:
    """Facts of a delta as those of a full freeze."""
    full: dict[str, Any] = {**facts, "kind": "full", "since": None}
    return full | {"long": _full(facts["long"])} if "long" in facts else full


def _kind(page: Page) -> str:
    """The name of the records of a page of a sparse table."""
    return next(name for name in page if name not in ("shards", "starts"))


def _keys(name: str, records: Array) -> I64:
    """Keys that no two records of a freeze share: ids of rows, numbers of buckets."""
    if name in _REPLACED:
        return records
    if name == "waiting":
        numbers: I64 = records.view(np.int64)[:, 0].copy()
        return numbers
    return ids_of(records)


def _contains(sorted_keys: I64, keys: I64) -> Array:
    if not len(sorted_keys):
        return np.zeros(len(keys), bool)
    places = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    found: Array = sorted_keys[places] == keys
    return found


def _kept(page: Page, name: str, keep: Array) -> Iterator[Page]:
    """The page with the records that are kept; no page if there are none."""
    if keep.all():
        yield page
    elif keep.any():
        before: I64 = np.concatenate([[0], np.cumsum(keep)])[page["starts"]]
        present = np.flatnonzero(np.diff(before))
        starts = np.append(before[present], before[-1]).astype(np.int64)
        yield {name: page[name][keep], "shards": page["shards"][present], "starts": starts}
