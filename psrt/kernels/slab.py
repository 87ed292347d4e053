"""Fused passes over one stripe of a sparse table: find rows by id, to read or to update them.

A stripe is an `IdMap` (keys, slots, size) and a slab of rows `[header | weights | state]`, see
`optimizer_rows`. `route` groups a batch by stripe once; every other kernel then gets the positions
`order` of its stripe's ids in the batch, and reads or writes the caller's arrays in place: nothing
is gathered in between. Callers hold the stripe's lock and have reserved room.

Reading never creates a row: a row that is not there reads as its initial value.
"""

from __future__ import annotations

import numpy as np

from psrt.core.types import F32, I32, I64
from psrt.kernels.hashing import virtual_shard
from psrt.kernels.idmap import find, find_or_insert, first_cell
from psrt.kernels.initialize import initial_row
from psrt.kernels.jit import device, kernel
from psrt.kernels.optimizer_rows import HEADER_WORDS, UPDATES_WORD, VERSION_WORD
from psrt.kernels.prefetch import AHEAD, prefetch, prefetch_row

FOREIGN = -1  # in a shard → stripe table: another pserver holds this virtual shard


@kernel("const i8[::1], const i4[::1], b1, i8, i4[::1], i4[::1], i8[::1] -> i8", group="pserver")
def route(
    ids: I64,
    stripe_of_shard: I32,
    has_padding: bool,
    padding_id: int,
    owner: I32,
    order: I32,
    starts: I64,
) -> int:
    """Group a batch by stripe, keeping the order of ids inside each (counting sort).

    `stripe_of_shard` (shards,) maps virtual shards to stripes 0 … S-1 or FOREIGN. Writes `order`
    (n,) and `starts` (S + 2,): stripe s has `order[starts[s]:starts[s + 1]]`, and the padding id
    is group S. `owner` (n,) is scratch. Returns −1, or the position of the first foreign id.
    """
    groups = len(starts) - 1
    starts[:] = 0
    for i in range(len(ids)):
        stripe = stripe_of_shard[virtual_shard(ids[i], len(stripe_of_shard))]
        if has_padding and ids[i] == padding_id:
            stripe = groups - 1
        if stripe < 0:
            return i
        owner[i] = stripe
        starts[stripe] += 1
    total = 0
    for group in range(groups + 1):
        count = starts[group]
        starts[group] = total
        total += count
    for i in range(len(ids)):
        order[starts[owner[i]]] = i
        starts[owner[i]] += 1
    for group in range(groups, 0, -1):
        starts[group] = starts[group - 1]
    starts[0] = 0
    return -1


@device
def prefetch_probe(keys: I64, slots: I32, ids: I64, order: I32, k: int) -> None:
    """Fetch what probing needs later in this loop: a cell, and half as far ahead its key."""
    if k + AHEAD < len(order):
        prefetch(slots, first_cell(slots, ids[order[k + AHEAD]]), 0)
    if k + AHEAD // 2 < len(order):
        slot = slots[first_cell(slots, ids[order[k + AHEAD // 2]])]
        if slot >= 0:
            prefetch(keys, np.int64(slot), 0)


@device
def prefetch_found(slab: F32, found: I32, k: int) -> None:
    """Fetch the row that this loop reaches `AHEAD` iterations later."""
    if k + AHEAD < len(found) and found[k + AHEAD] >= 0:
        prefetch_row(slab, int(found[k + AHEAD]))


@kernel(
    "const i8[::1], const i4[::1], const f4[:, ::1], const i8[::1], const i4[::1], i4[::1], "
    "i8, f4, f4, i8, f4[:, ::1] -> void",
    group="pserver table",
)
def read_rows(
    keys: I64,
    slots: I32,
    slab: F32,
    ids: I64,
    order: I32,
    found: I32,
    kind: int,
    a: float,
    b: float,
    seed: int,
    out: F32,
) -> None:
    """`out[i]` (n, d) = weights of row `ids[i]` for all i in `order`."""
    for k in range(len(order)):
        prefetch_probe(keys, slots, ids, order, k)
        found[k] = find(keys, slots, ids[order[k]])
    for k in range(len(order)):
        prefetch_found(slab, found, k)
        i = order[k]
        target = out[i]
        if found[k] < 0:
            initial_row(kind, a, b, seed, ids[i], target)
        else:
            row = slab[found[k], HEADER_WORDS:]
            for column in range(len(target)):
                target[column] = row[column]


@device
def create_row(
    row: F32, id_: int, width: int, kind: int, a: float, b: float, seed: int, first: F32
) -> None:
    """A row that has never been updated: zero header, initial weights, first state."""
    row[:HEADER_WORDS] = 0
    initial_row(kind, a, b, seed, id_, row[HEADER_WORDS : HEADER_WORDS + width])
    for number in range(len(first)):
        at = HEADER_WORDS + (1 + number) * width
        row[at : at + width] = first[number]


@kernel(
    "i8[::1], i4[::1], i8, f4[:, ::1], const i8[::1], const i4[::1], i4[::1], i8, i8, "
    "i8, f4, f4, i8, const f4[::1] -> i8",
    group="pserver table",
)
def touch_(
    keys: I64,
    slots: I32,
    size: int,
    slab: F32,
    ids: I64,
    order: I32,
    found: I32,
    version: int,
    width: int,
    kind: int,
    a: float,
    b: float,
    seed: int,
    first: F32,
) -> int:
    """Make rows `ids[order]` ready for an update by `optimizer_rows`; the new size of the map.

    All of them exist after this, `found` (n,) are their slots, their headers bear `version` and one
    more update. `first` (k,) begins the state vectors of a new row. The updates are a loop of their
    own: mixed with them, each mispredicted probe also stalls an update (13,312 rows of 16 in the
    cache: 320 µs fused, 200 µs apart, SGD).
    """
    headers = slab.view(np.int32)
    for k in range(len(order)):
        prefetch_probe(keys, slots, ids, order, k)
        id_ = ids[order[k]]
        slot = find_or_insert(keys, slots, size, id_)
        if slot == size:
            create_row(slab[slot], id_, width, kind, a, b, seed, first)
            size += 1
        found[k] = slot
    for k in range(len(order)):
        prefetch_found(slab, found, k)
        headers[found[k], VERSION_WORD] = version
        headers[found[k], UPDATES_WORD] += 1
    return size
