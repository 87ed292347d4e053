"""Pages of a frozen table: plain arrays, grouped by virtual shard, that any pserver can restore.

A page of a sparse table has one kind of record:

    rows      (n, words) float32: rows as the slab has them (`kernels.tables.row_layout`)
    waiting   (n, 2 + BUCKET_WORDS) float32: buckets of ids that wait for admission, each behind
              its number, an int64: virtual shard · buckets of a shard + its number in the shard
    deleted   (n,) int64: ids whose rows were dropped since the freeze before; in deltas only

and for the long part of a two-part table `long_rows` and `long_deleted`. `shards` (k,) int32 are
the virtual shards of the page in rising order, `starts` (k + 1,) int64 the places where their
records begin. A page of a dense table has `values` (size,) and `state` (vectors, size).

In a delta, deleted ids come before the rows of the same freeze: an id may have begun anew.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from psrt.core.errors import ErrorCode, TableError
from psrt.core.specs import TableSpec, to_plain
from psrt.core.types import F32, I32, I64, Array
from psrt.kernels.tables import ID_WORD, rows

Page: TypeAlias = dict[str, Array]
Meta: TypeAlias = dict[str, Any]
"""Facts of a frozen table, as JSON has them."""

FORMAT = 1
"""The version of pages and facts."""

PAGE_BYTES = 8 << 20
_LONG = {"rows": "long_rows", "deleted": "long_deleted"}
_SHORT = {long: short for short, long in _LONG.items()}


def facts_of(spec: TableSpec, version: int, since: int | None) -> Meta:
    """Facts of a table at a full freeze, or at a delta that begins `since` an earlier version."""
    return {
        "format": FORMAT,
        "table": spec.name,
        "kind": "full" if since is None else "delta",
        "since": since,
        "spec": to_plain(spec),
        "version": version,
    }


def page_of(name: str, records: Array, shards: int, buckets: int) -> Page:
    """A page of `records`, which are in any order; `shards` is the number of virtual shards of the
    table, `buckets` that of buckets of each."""
    if name == "waiting":
        of_shard = records.view(np.int64)[:, 0] // buckets
        order = np.argsort(of_shard, kind="stable").astype(np.int32)
        counts = np.bincount(of_shard, minlength=shards)
    else:
        ids = ids_of(records) if name == "rows" else records
        order, counts = rows.partition_ids(ids, np.arange(shards + 1), shards)
    present = np.flatnonzero(counts)
    starts = np.concatenate([[0], np.cumsum(counts[present])])
    ordered = records[order] if name == "deleted" else _gathered(records, order)
    return {name: ordered, "shards": present.astype(np.int32), "starts": starts.astype(np.int64)}


def long_page(page: Page) -> Page:
    """A page of the long part of a two-part table."""
    return {_LONG.get(name, name): each for name, each in page.items()}


def split_page(page: Page) -> tuple[Page, Page]:
    """A page of a two-part table as one of its short part and one of its long part; one is
    empty."""
    if page.keys() & _SHORT.keys():
        return {}, {_SHORT.get(name, name): each for name, each in page.items()}
    return page, {}


def ids_of(records: F32) -> I64:
    """A copy of the ids of rows (n, words)."""
    ids: I64 = records.view(np.int64)[:, ID_WORD // 2].copy()
    return ids


def part_of(page: Page, first_shard: int, last_shard: int) -> slice:
    """The records of a page that belong to virtual shards from `first_shard` to `last_shard` −
    1."""
    first, last = np.searchsorted(page["shards"], [first_shard, last_shard])
    return slice(int(page["starts"][first]), int(page["starts"][last]))


def rows_of(meta: Meta, first_shard: int, last_shard: int) -> int:
    """About so many rows of a freeze belong to virtual shards from `first_shard` to `last_shard` −
    1."""
    first, last = meta["spec"]["first_shard"], meta["spec"]["last_shard"]
    common = max(0, min(last, last_shard) - max(first, first_shard))
    return int(meta["rows"] * common // (last - first))


def check_page(table: str, page: Page, name: str, dtype: type[np.generic], width: int) -> None:
    """Raise `TableError` if the records `name` of a page are not (n, `width`) of `dtype`, or for
    width 0 (n,), or if its shards do not fit them."""
    records, shards, starts = page[name], page.get("shards"), page.get("starts")
    wanted = (len(records), width) if width else (len(records),)
    if records.dtype != dtype or records.shape != wanted:
        got = f"{records.dtype} of shape {records.shape}"
        raise misfit(table, name, got, f"{np.dtype(dtype)} of shape {wanted}")
    if shards is None or starts is None or not _fits(shards, starts, len(records)):
        raise misfit(table, f"shards of {name}", "places that do not fit", "one for each shard")


def misfit(table: str, field: str, got: object, wanted: object) -> TableError:
    return TableError(
        f"table {table!r} cannot be restored: {field} is {got} in the pages, but {wanted} is "
        "needed.",
        code=ErrorCode.TABLE_SHAPE,
        hint="Restore a table with the spec that it was frozen with.",
    )


def _gathered(records: F32, order: I32) -> F32:
    out = np.empty_like(records)
    rows.gather(records, order, out)
    return out


def _fits(shards: Array, starts: Array, count: int) -> bool:
    if len(starts) != len(shards) + 1 or starts[0] != 0 or starts[-1] != count:
        return False
    return bool((np.diff(shards) > 0).all() and (np.diff(starts) >= 0).all())
