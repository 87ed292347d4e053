"""The trainer that a record goes to in a global shuffle: drawn by number, or the hash of a text.

Both are pure functions, equal on every host and in every version.
"""

from __future__ import annotations

from psrt.core.types import I32, I64, U8
from psrt.kernels.jit import kernel
from psrt.kernels.lowlevel import virtual_shard
from psrt.kernels.tables import row_bits
from psrt.kernels.text.criteo import FNV_START, hash_bytes


@kernel("i8, i8, i8, i4[::1] -> void", group="data")
def deal_by_number(seed: int, first: int, trainers: int, out: I32) -> None:
    """`out` (n,) = a trainer drawn for each of the records `first`, `first` + 1, …"""
    for i in range(len(out)):
        out[i] = virtual_shard(row_bits(seed, first + i), trainers)  # type: ignore[arg-type]


@kernel("const u1[::1], const i8[::1], i8, i4[::1] -> void", group="data")
def deal_by_text(text: U8, offsets: I64, trainers: int, out: I32) -> None:
    """`out` (n,) = the trainer of each text: FNV-1a of its bytes, mixed, scaled to `trainers`."""
    for i in range(len(out)):
        out[i] = virtual_shard(hash_bytes(text, offsets[i], offsets[i + 1], FNV_START), trainers)
