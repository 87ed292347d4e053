"""Per-row counters and eviction tests.

Words of a row are those of `row_layout`; an absent word has place −1. The version word holds the
time of the row's last update, so the age of a row is the table's time (`SparseTable.time`) minus
that. Times are modulo 2³¹, so an age of 2³⁰ or more would count as young: sweeps that come often
enough `pull_along_` rows before they are that old. Callers hold the lock of the stripe; a pass
covers the rows `[first, last)` of its slab.
"""

from __future__ import annotations

import math

import numpy as np

from psrt.core.types import F32, I32, I64, U8
from psrt.kernels.jit import device, kernel
from psrt.kernels.lowlevel import AHEAD, prefetch_row
from psrt.kernels.optimizers import VERSION_WORD

KEPT, BY_ROUNDS, BY_DAYS, BY_SCORE, BY_MEMORY = 0, 1, 2, 3, 4
REASONS = ("kept", "rounds", "days", "score", "memory")
"""Reasons to drop a row; the first that holds counts."""

ONE_SHOW_EACH: F32 = np.empty((0, 2), np.float32)
"""In place of shows and clicks (n, 2): every id of the batch was shown once."""

OLDEST = 3 << 28
"""The age of rows that are pulled along."""

MOST_SHOWS = np.float32(np.finfo(np.float32).max)
"""The most shows or clicks of a row: they decay from there, as they would not from infinity."""

AGE_BINS = 256
_PARTS = 8  # bins per doubling of the age: an age is known to an eighth
_VERSION_MASK = 0x7FFFFFFF


@device
def add_(row: F32, at: int, count: float) -> None:
    """Add shows or clicks of a push."""
    if 0.0 < count <= MOST_SHOWS:
        row[at] = min(row[at] + count, MOST_SHOWS)


@kernel(
    "f4[:, ::1], const i4[::1], const i4[::1], const f4[:, ::1], i8, i8 -> void", group="policy"
)
def count_(rows: F32, found: I32, order: I32, counts: F32, show_at: int, click_at: int) -> None:
    """Add to rows `found` (m,) the shows and clicks of lines `order` (m,) of `counts` (n, 2), or,
    if that is (0, 2), one show each. A count that is negative, infinite or not a number is none.

    In float32: a row that is shown once a push stops at 2²⁴ shows until they decay.
    """
    for k in range(len(found)):
        if k + AHEAD < len(found):
            prefetch_row(rows, int(found[k + AHEAD]))
        if not len(counts):
            rows[found[k], show_at] += np.float32(1.0)
            continue
        add_(rows[found[k]], show_at, counts[order[k], 0])
        add_(rows[found[k]], click_at, counts[order[k], 1])


@device
def score_of(row: F32, show_at: int, click_at: int, nonclick: float, click: float) -> float:
    """nonclick · (shows − clicks) + click · clicks."""
    clicks = row[click_at]
    return float(nonclick * (row[show_at] - clicks) + click * clicks)


@device
def age_of(version: int, row_version: int) -> int:
    """Time since the row's last update; 0 for a row that is younger than `version`."""
    age = (version - row_version) & _VERSION_MASK
    return 0 if age > _VERSION_MASK // 2 else age


@device
def age_bin(age: int) -> int:
    """The bin of an age: 0, 1, … 7 by themselves, then eight to a doubling."""
    if age < _PARTS:
        return age
    exponent = int(math.log2(np.float64(age)))
    return (exponent - 2) * _PARTS + (age >> (exponent - 3)) - _PARTS


@kernel("f4[:, ::1], i8, i8, i8 -> void", group="policy")
def pull_along_(rows: F32, first: int, last: int, version: int) -> None:
    """Let no row be older than OLDEST at `version`."""
    headers = rows.view(np.int32)
    for i in range(first, last):
        if age_of(version, headers[i, VERSION_WORD]) > OLDEST:
            headers[i, VERSION_WORD] = (version - OLDEST) & _VERSION_MASK


@kernel("const f4[:, ::1], i8, i8, i8, i8[::1] -> void", group="policy")
def count_ages(rows: F32, first: int, last: int, version: int, bins: I64) -> None:
    """Add the rows to `bins` (AGE_BINS,) by their age at `version`."""
    headers = rows.view(np.int32)
    for i in range(first, last):
        bins[age_bin(age_of(version, headers[i, VERSION_WORD]))] += 1


@kernel("f4[:, ::1], i8, i8, i8, i8, f4 -> void", group="policy")
def decay_(rows: F32, first: int, last: int, show_at: int, click_at: int, factor: float) -> None:
    """Multiply shows and clicks."""
    for i in range(first, last):
        rows[i, show_at] *= factor
        rows[i, click_at] *= factor


@kernel(
    "const f4[:, ::1], i8, i8, i8, i8, i8, i8, i8, i8, i8, f4, f4, f4, i8, i8, u1[::1], i8[::1] "
    "-> i8",
    group="policy",
)
def judge(
    rows: F32,
    first: int,
    last: int,
    version: int,
    ttl_rounds: int,
    seen_at: int,
    hour: int,
    ttl_hours: int,
    show_at: int,
    click_at: int,
    nonclick: float,
    click: float,
    least_score: float,
    oldest_bin: int,
    quota: int,
    reasons: U8,
    ended: I64,
) -> int:
    """`reasons` (last − first,) = the reason to drop each row, or KEPT; returns the rest of
    `quota`. `ended` (REASONS,) grows by the rows to drop, by reason.

    A limit ≤ 0 does not count, nor does a place −1. Rows of an age beyond bin `oldest_bin`, and up
    to `quota` of those in it, are dropped for memory.
    """
    headers = rows.view(np.int32)
    for i in range(first, last):
        age = age_of(version, headers[i, VERSION_WORD])
        reason = KEPT
        if 0 < ttl_rounds < age:
            reason = BY_ROUNDS
        elif seen_at >= 0 and 0 < ttl_hours < hour - headers[i, seen_at]:
            reason = BY_DAYS
        elif (
            least_score > 0.0
            and score_of(rows[i], show_at, click_at, nonclick, click) < least_score
        ):
            reason = BY_SCORE
        elif oldest_bin < AGE_BINS:  # a bin costs more than all of the above
            own_bin = age_bin(age)
            if own_bin > oldest_bin:
                reason = BY_MEMORY
            elif own_bin == oldest_bin and quota > 0:
                reason = BY_MEMORY
                quota -= 1
        reasons[i - first] = reason
        if reason != KEPT:
            ended[reason] += 1
    return quota


@kernel(
    "const f4[:, ::1], const i4[::1], const i4[::1], i8, i8, f4, f4, f4[::1] -> void",
    group="policy",
)
def read_scores(
    rows: F32,
    found: I32,
    order: I32,
    show_at: int,
    click_at: int,
    nonclick: float,
    click: float,
    out: F32,
) -> None:
    """`out[order[k]]` = score of row `found[k]`, for all k with found[k] ≥ 0; others are left."""
    for k in range(len(found)):
        if found[k] >= 0:
            out[order[k]] = score_of(rows[found[k]], show_at, click_at, nonclick, click)
