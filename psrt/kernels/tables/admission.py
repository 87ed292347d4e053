"""Admission of ids that have no row yet: by a count while they wait, or by a draw.

Ids wait in buckets of `BUCKET` cells. A cell is an id and the amount it has gathered: its shows, or
its score. A bucket is a record of BUCKET_WORDS words of 4 bytes: the ids of its cells, then the
amounts. Each virtual shard has its own buckets, so admission of an id depends on the ids of its
shard alone, not on the spread of shards over pservers. A full bucket makes room as Misra & Gries
(1982, "Finding repeated elements") do: the newcomer and all that wait there lose the amount of the
least of them. So a cell is never less than its id has gathered minus a ninth of all that came to
its bucket meanwhile, and never more than it has gathered.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.core.types import F32, I32, I64
from psrt.kernels.jit import device, kernel
from psrt.kernels.lowlevel import mix64, virtual_shard
from psrt.kernels.tables.initialize import random_bits, row_bits

BUCKET = 8
AMOUNTS_AT = 2 * BUCKET
BUCKET_WORDS = AMOUNTS_AT + BUCKET
_DRAW_COLUMN = (1 << 62) - 1  # no table is that wide: the draw is independent of all weights

# Both kernels: `ids` (n,) of a batch, `order` (m,) positions of a stripe's ids in it, `found` (m,)
# their slots, negative where there is no row. They write the positions that may go on to `kept`
# (m,), in order, and return how many these are.
_BATCH = "const i8[::1], const i4[::1], const i4[::1], i4[::1]"


@device
def bucket_of(id_: int, first_shard: int, shards: int, buckets: int) -> int:
    """The bucket of `id_`, with `buckets` per shard from `first_shard` on."""
    low = mix64(np.uint64(id_)) & np.uint64(0xFFFFFFFF)
    bucket = np.int64((low * np.uint64(buckets)) >> np.uint64(32))
    return int((virtual_shard(id_, shards) - first_shard) * buckets + bucket)


@device
def gather_(waiting: I64, gathered: F32, id_: int, amount: float) -> None:
    """Record `amount` for `id_`, which is not in its bucket of cells `waiting` and `gathered`."""
    least = 0
    for cell in range(BUCKET):
        if gathered[cell] < gathered[least]:
            least = cell
    lost = min(gathered[least], amount)
    for cell in range(BUCKET):
        gathered[cell] -= lost
    if amount > lost:
        waiting[least] = id_
        gathered[least] = amount - lost


@device
def has_gathered_(waiting: I64, gathered: F32, id_: int, amount: float, threshold: float) -> bool:
    """True if `id_` has gathered `threshold` with `amount` more; it then leaves its bucket."""
    for cell in range(BUCKET):
        if gathered[cell] > 0.0 and waiting[cell] == id_:
            gathered[cell] += amount
            if gathered[cell] < threshold:
                return False
            gathered[cell] = 0.0
            return True
    if amount >= threshold:
        return True
    gather_(waiting, gathered, id_, amount)
    return False


@device
def worth(counts: F32, i: int, show_worth: float, click_worth: float) -> Any:
    """The worth of the shows and clicks of line `i`; without `counts`, of one show. A negative or
    infinite worth, or NaN, counts as 0."""
    if not len(counts):
        return show_worth
    amount = show_worth * counts[i, 0] + click_worth * counts[i, 1]
    return amount if 0.0 < amount < np.inf else np.float32(0.0)


@kernel(f"{_BATCH}, const f4[:, ::1], f4, f4, f4, f4[:, ::1], i8, i8, i8 -> i8", group="policy")
def admit_counted(
    ids: I64,
    order: I32,
    found: I32,
    kept: I32,
    counts: F32,
    show_worth: float,
    click_worth: float,
    threshold: float,
    records: F32,
    first_shard: int,
    shards: int,
    buckets: int,
) -> int:
    """Keep ids that have a row, and those that have gathered `threshold` with this batch.

    `counts` (n, 2) are shows and clicks of each id, or (0, 2): one show each. A show is worth
    `show_worth`, a click `click_worth` more than that. `records` (m, BUCKET_WORDS) are the
    buckets of some of `shards` virtual shards, from `first_shard` on.
    """
    size, waiting = 0, records.view(np.int64)
    for k in range(len(order)):
        i = order[k]
        if found[k] < 0:
            at = bucket_of(ids[i], first_shard, shards, buckets)
            amount, gathered = worth(counts, i, show_worth, click_worth), records[at, AMOUNTS_AT:]
            if not has_gathered_(waiting[at], gathered, ids[i], amount, threshold):
                continue
        kept[size] = i
        size += 1
    return size


@kernel("const i8[::1], const i4[::1], const i4[::1], i4[::1], i8, i8, i8 -> i8", group="freeze")
def find_buckets(
    ids: I64, order: I32, found: I32, out: I32, first_shard: int, shards: int, buckets: int
) -> int:
    """`out` (n,) = the buckets of those of `ids[order]` without a row; returns their number."""
    count = 0
    for k in range(len(order)):
        if found[k] < 0:
            out[count] = bucket_of(ids[order[k]], first_shard, shards, buckets)
            count += 1
    return count


@kernel(f"{_BATCH}, f8, i8 -> i8", group="policy")
def admit_drawn(ids: I64, order: I32, found: I32, kept: I32, probability: float, seed: int) -> int:
    """Keep ids that have a row, and the share `probability` of all others that the seed draws."""
    size = 0
    for k in range(len(order)):
        i = order[k]
        if found[k] < 0:
            bits = random_bits(row_bits(seed, ids[i]), _DRAW_COLUMN)
            if np.float64(np.int64(bits >> np.uint64(11))) * 2.0**-53 >= probability:
                continue
        kept[size] = i
        size += 1
    return size
