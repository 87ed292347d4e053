"""Copies of records that are about to change: a freeze keeps an array as it was, while it changes.

A *record* is a line of an array: a row of a slab, or a bucket of ids that wait for admission. A bit
for each record is set once nothing needs to be copied of it; bits (n,) are bytes (⌈n / 8⌉,), the
lowest bit first. A walker takes records in rising order and reads no bit of those behind it, so a
record is pending if it is in front of the walker, existed at the freeze, and lacks its bit.

A copy may be wider than its record by two words in front: they get the number of the record, an
int64. Records whose words from `tested` on are all zero are left out; with `tested` = the length of
a record, none is. Callers hold the lock of the array.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.core.types import F32, I32, I64, U8
from psrt.kernels.jit import device, kernel
from psrt.kernels.lowlevel import AHEAD, copy_row, prefetch_row

_ALL = np.uint8(0xFF)


@device
def has_bit(bits: U8, number: Any) -> bool:
    return bool(bits[number >> 3] & np.uint8(1 << (number & 7)))


@device
def set_bit_(bits: U8, number: Any) -> None:
    bits[number >> 3] |= np.uint8(1 << (number & 7))


@device
def is_empty(record: F32, tested: int) -> bool:
    for word in range(tested, len(record)):
        if record[word] != 0.0:
            return False
    return tested < len(record)


@device
def append_(records: F32, at: Any, tested: int, base: int, out: F32, count: int) -> int:
    """Copy record `at` to `out[count]`, with the number `base` + `at` in front if there is room;
    returns the new count."""
    if is_empty(records[at], tested):
        return count
    front = out.shape[1] - records.shape[1]
    if front:
        out.view(np.int64)[count, 0] = base + at
    copy_row(out[count, front:], records[at])
    return count + 1


@kernel(
    "const f4[:, ::1], const i4[::1], i8, i8, i8, u1[::1], i8, i8, f4[:, ::1], i8[::1] -> i8",
    group="freeze",
)
def save_(
    records: F32,
    numbers: I32,
    begin: int,
    first: int,
    end: int,
    done: U8,
    tested: int,
    base: int,
    out: F32,
    count: I64,
) -> int:
    """Append the pending ones of `numbers` (n,) from place `begin` on to the `count[0]` copies in
    `out`, which rises. Returns n, or the place where `out` was full.

    Numbers beyond [`first`, `end`) are not part of the freeze, or were taken.
    """
    for k in range(begin, len(numbers)):
        if k + AHEAD < len(numbers) and numbers[k + AHEAD] >= 0:
            prefetch_row(records, int(numbers[k + AHEAD]))
        at = numbers[k]
        if first <= at < end and not has_bit(done, at):
            if count[0] == len(out):
                return k
            set_bit_(done, at)
            count[0] = append_(records, at, tested, base, out, count[0])
    return len(numbers)


@kernel("const f4[:, ::1], i8[::1], i8, const u1[::1], i8, i8, f4[:, ::1] -> i8", group="freeze")
def take_(records: F32, position: I64, end: int, done: U8, tested: int, base: int, out: F32) -> int:
    """Copy records from `position[0]` on that lack their bit to `out` until it is full; moves the
    position, `end` at most. Returns the number of copies."""
    at, count = position[0], 0
    while at < end and count < len(out):
        if at & 7 == 0 and done[at >> 3] == _ALL:
            at += 8
            continue
        if not has_bit(done, at):
            count = append_(records, at, tested, base, out, count)
        at += 1
    position[0] = min(at, end)
    return count


@kernel("u1[::1], const i4[::1] -> void", group="freeze")
def mark_(bits: U8, numbers: I32) -> None:
    """Set the bits of `numbers` (n,); skips negative ones."""
    for k in range(len(numbers)):
        if numbers[k] >= 0:
            set_bit_(bits, numbers[k])
