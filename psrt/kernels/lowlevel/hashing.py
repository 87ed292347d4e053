"""Stable hashes: the same on every host, in every version; checkpoints and plans depend on them."""

from __future__ import annotations

import zlib

import numpy as np

from psrt.core.types import I32, I64
from psrt.kernels.jit import device, kernel

_DIGEST_SEED = np.uint64(0x243F6A8885A308D3)
_DIGEST_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@device
def mix64(x: np.uint64) -> np.uint64:
    """Bijective 64-bit mixer: the finalizer of SplitMix64 (Steele, Lea & Flood 2014; Stafford's
    variant 13 constants). Every input bit changes every output bit with probability near 1/2."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@device
def virtual_shard(id_: int, n_shards: int) -> np.int64:
    """Virtual shard of one id: the high 32 bits of its hash scaled to [0, n_shards).

    Scaling uses the high bits and hash tables the low ones, so ids of one shard still spread
    evenly over a table (Lemire 2019, "Fast random integer generation in an interval").
    """
    high = mix64(np.uint64(id_)) >> np.uint64(32)
    return np.int64((high * np.uint64(n_shards)) >> np.uint64(32))


@kernel("const i8[::1], i8, i4[::1] -> void", group="pserver trainer")
def virtual_shards(ids: I64, n_shards: int, out: I32) -> None:
    """`out` (n,) int32 = virtual shard of each of `ids` (n,) int64."""
    for i in range(len(ids)):
        out[i] = virtual_shard(ids[i], n_shards)


@kernel("const i8[::1] -> u8", group="pserver trainer")
def digest(ids: I64) -> np.uint64:
    """A number for a list of `ids` (n,) in this order; that two lists share one is as good as
    impossible. Four multiplications are under way at a time, each waits for the one before it."""
    a, b = _DIGEST_SEED, mix64(_DIGEST_SEED)
    c, d = mix64(b), mix64(_DIGEST_SEED ^ np.uint64(len(ids)))
    whole = len(ids) // 4 * 4
    for i in range(0, whole, 4):
        a = _stirred(a, ids[i])
        b = _stirred(b, ids[i + 1])
        c = _stirred(c, ids[i + 2])
        d = _stirred(d, ids[i + 3])
    for i in range(whole, len(ids)):
        a = _stirred(a, ids[i])
    return mix64(mix64(mix64(mix64(a) ^ b) ^ c) ^ d)


@device
def _stirred(state: np.uint64, id_: int) -> np.uint64:
    """One more id; a bijection of either for each value of the other."""
    state = (state ^ np.uint64(id_)) * _DIGEST_FACTOR
    return state ^ (state >> np.uint64(29))


def stable_hash(text: str) -> int:
    """CRC-32 of the UTF-8 form: for names, where Python's `hash` differs between processes."""
    return zlib.crc32(text.encode())
