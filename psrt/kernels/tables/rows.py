"""Rows chosen by id or index: dedupe, gather, scatter, merge, and partition among pservers.

Called by trainers (prefetch, routing) and pservers, from any thread. Indices are trusted.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from psrt.core.tensors import SelectedRows
from psrt.core.tracing import traced
from psrt.core.types import F32, I32, I64, U8
from psrt.kernels.jit import kernel
from psrt.kernels.lowlevel import (
    AHEAD,
    FAR_BYTES,
    add_row,
    copy_row,
    mix64,
    prefetch_row,
    virtual_shard,
)

_MANY = 1 << 40
_CELLS_AN_ID = 2.5  # fewer collide more often, more are further apart


class CellBuffer:
    """Cells of the last `unique`: fresh pages of the system would cost more than the rest of it.

    With `keeps` it also holds results, which stay valid during the next call, not longer.
    `distinct` is the last number of distinct ids: batches are alike, and unneeded cells push other
    data out of the cache (26,624 ids, 10,300 of them distinct: 0.37 → 0.29 ms a step).
    """

    def __init__(self, keeps: bool = False) -> None:
        self.distinct = _MANY
        self._cells: I32 = np.empty(0, np.int32)
        self._keeps = keeps
        self._results = [_new_results(0), _new_results(0)]

    def empty(self, ids: int) -> I32:
        """Empty cells for so many distinct ids."""
        count = 1 << int(ids * _CELLS_AN_ID).bit_length()
        if len(self._cells) < count:
            self._cells = np.empty(count, np.int32)
        cells = self._cells[:count]
        cells.view(np.uint8).fill(0xFF)  # −1: a third of the time of `cells.fill`
        return cells

    def results(self, count: int) -> tuple[I64, I32]:
        """Memory for `count` distinct ids and as many positions."""
        if not self._keeps:
            return _new_results(count)
        self._results.reverse()
        if len(self._results[0][0]) < count:
            self._results[0] = _new_results(count)
        ids, inverse = self._results[0]
        return ids[:count], inverse[:count]


def _new_results(count: int) -> tuple[I64, I32]:
    return np.empty(count, np.int64), np.empty(count, np.int32)


class _CellsOfThread(threading.local):
    def __init__(self) -> None:
        self.cells = CellBuffer()


_of_thread = _CellsOfThread()


def unique(ids: I64, scratch: CellBuffer | None = None) -> tuple[I64, I32]:
    """Distinct `ids` in first-seen order, and the position (n,) of each id in them.

    `unique_ids[inverse] == ids`, like `np.unique(..., return_inverse=True)` without the sorting.
    A caller on changing threads passes its own `scratch`; otherwise each thread keeps one.
    """
    scratch = scratch or _of_thread.cells
    return unique_of([ids], scratch)


def unique_of(lists: Sequence[I64], scratch: CellBuffer) -> tuple[I64, I32]:
    """`unique` of several lists of ids in a row."""
    size = sum(map(len, lists))
    unique_ids, inverse = scratch.results(size)
    likely = min(size, scratch.distinct + scratch.distinct // 4)
    count = _number_all(lists, scratch.empty(likely), unique_ids, inverse)
    if count < 0:
        count = _number_all(lists, scratch.empty(size), unique_ids, inverse)
    scratch.distinct = count
    return unique_ids[:count], inverse


def _number_all(lists: Sequence[I64], cells: I32, unique_ids: I64, inverse: I32) -> int:
    count = start = 0
    for ids in lists:
        stop = start + len(ids)
        count = _number(ids, cells, unique_ids, inverse[start:stop], count)
        if count < 0:
            break
        start = stop
    return count


@kernel("const i8[::1], i4[::1], i8[::1], i4[::1], i8 -> i8", group="pserver trainer")
def _number(ids: I64, cells: I32, unique_ids: I64, inverse: I32, count: int) -> int:
    """Number distinct `ids` (n,) behind the `count` ids that have numbers; returns the new count,
    or −1 if half of the cells are full.

    `cells`, a power of two, are −1 before the first.

    An id is stored as the next new one before its lookup, so that new and known ids take one path:
    the processor cannot predict the kind (13,312 skewed ids: 141 → 53 µs).
    """
    mask, most = np.uint64(len(cells) - 1), len(cells) // 2
    for i in range(len(ids)):
        if count > most:
            return -1
        unique_ids[count] = ids[i]
        cell = mix64(np.uint64(ids[i])) & mask
        number = cells[cell] if cells[cell] >= 0 else count
        while unique_ids[number] != ids[i]:
            cell = (cell + np.uint64(1)) & mask
            number = cells[cell] if cells[cell] >= 0 else count
        cells[cell] = number
        inverse[i] = number
        count += number == count
    return count


@kernel("const i4[::1], const i8[::1], i8[::1], u1[::1] -> void", group="pserver")
def newest_by(numbers: I32, trainers: I64, newest: I64, needed: U8) -> None:
    """`needed` (n,) marks entries, newest first, that are the newest of their id, or the newest by
    another trainer than the newest's. `numbers` (n,) are those of ids; `newest` (n,) is −1."""
    for i in range(len(numbers)):
        first = newest[numbers[i]]
        needed[i] = first == -1 or (first >= 0 and first != trainers[i])
        if first == -1:
            newest[numbers[i]] = trainers[i]
        elif needed[i]:
            newest[numbers[i]] = -2


@kernel("const i8[::1], i8, i4[::1] -> b1", group="trainer", brief=True)
def as_rows(ids: I64, height: int, out: I32) -> bool:
    """`out` (n,) = `ids` (n,); returns True if all are from 0 to `height` − 1."""
    bad = np.uint64(0)
    for i in range(len(ids)):
        bad |= np.uint64(np.uint64(ids[i]) >= np.uint64(height))
        out[i] = ids[i]
    return bool(bad == 0)


@kernel("const f4[:, ::1], const i4[::1], f4[:, ::1] -> void", group="pserver trainer")
def gather(src: F32, index: I32, out: F32) -> None:
    """`out` (n, d) = `src` (m, d)[`index` (n,)]."""
    ahead = AHEAD if src.size * 4 > FAR_BYTES else len(index)
    for i in range(len(index)):
        if i + ahead < len(index):
            prefetch_row(src, index[i + ahead])
        copy_row(out[i], src[index[i]])


@kernel("f4[:, ::1], const i4[::1], const f4[:, ::1] -> void", group="trainer freeze")
def scatter(out: F32, index: I32, values: F32) -> None:
    """`out` (m, d)[`index` (n,)] = `values` (n, d), in order."""
    for i in range(len(index)):
        copy_row(out[index[i]], values[i])


@kernel("f4[:, ::1], const i4[::1], const f4[:, ::1] -> void", group="pserver trainer")
def scatter_add_(out: F32, index: I32, values: F32) -> None:
    """`out` (m, d)[`index` (n,)] += `values` (n, d), in order; an index may appear twice."""
    for i in range(len(index)):
        add_row(out[index[i]], values[i])


@kernel("f4[:, ::1], const i4[::1], const f4[::1], i8, i8 -> void", group="trainer")
def scatter_add_groups_(out: F32, index: I32, values: F32, rows: int, apart: int) -> None:
    """`scatter_add_` of rows in contiguous groups of `rows`; groups begin `apart` numbers from each
    other in `values`, which may be columns of a wider array."""
    width = out.shape[1]
    for first in range(0, len(index), rows):
        at = first // rows * apart
        for i in range(first, min(first + rows, len(index))):
            add_row(out[index[i]], values[at : at + width])
            at += width


@traced("merge")
def merge(rows: SelectedRows) -> SelectedRows:
    """The gradient with each id once: values and counts of equal ids are summed in order."""
    if rows.unique:
        return rows
    ids, inverse = unique(rows.ids)
    values = _summed(rows.values, inverse, len(ids))
    counts = None if rows.counts is None else _summed(rows.counts, inverse, len(ids))
    return SelectedRows(ids, values, rows.height, unique=True, counts=counts)


def _summed(values: F32, inverse: I32, count: int) -> F32:
    out = np.zeros((count, values.shape[1]), np.float32)
    scatter_add_(out, inverse, values)
    return out


def partition_ids(ids: I64, shard_bounds: I64, n_shards: int) -> tuple[I32, I64]:
    """Group `ids` (n,) by owner: (order (n,), counts (owners,)).

    Owner e holds virtual shards [shard_bounds[e], shard_bounds[e + 1]); bounds (owners + 1,) rise
    from 0 to `n_shards`. `ids[order]` lists the ids of owner 0 first, each owner's in their old
    order (counting sort).
    """
    sizes = np.diff(shard_bounds)
    owners = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    if len(owners) != n_shards:
        raise ValueError(f"bounds {shard_bounds} do not cover {n_shards} virtual shards")
    order = np.empty(len(ids), np.int32)
    counts = np.zeros(len(sizes), np.int64)
    _partition(ids, owners, np.empty(len(ids), np.int32), counts.copy(), order, counts)
    return order, counts


@kernel(
    "const i8[::1], const i4[::1], i4[::1], i8[::1], i4[::1], i8[::1] -> void",
    group="pserver trainer",
)
def _partition(ids: I64, owners: I32, owner_of: I32, places: I64, order: I32, counts: I64) -> None:
    """`owners` by virtual shard; `owner_of` (n,) and `places` (owners,) are scratch."""
    for i in range(len(ids)):
        owner = owners[virtual_shard(ids[i], len(owners))]
        owner_of[i] = owner
        counts[owner] += 1
    place = 0
    for owner in range(len(counts)):
        places[owner] = place
        place += counts[owner]
    for i in range(len(ids)):
        owner = owner_of[i]
        order[places[owner]] = i
        places[owner] += 1
