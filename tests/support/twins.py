"""Plain-numpy twins of the kernels: the definition of right, for tests only.

Same names, arguments and float32 rounding as the kernels, written for reading rather than speed.
Element-wise twins agree to the bit; sums agree to the bit where the kernel states an order.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from psrt.core.specs import Constant, Initializer, TruncatedNormal, Uniform
from psrt.core.tensors import SelectedRows
from psrt.core.types import F32, F64, I32, I64, U64, Array

_f4 = np.float32

# --- hashing, initialize ---


def mix64(x: U64) -> U64:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def virtual_shards(ids: I64, n_shards: int) -> I32:
    """In Python's unbounded integers: ⌊(hash / 2³² ) · n / 2³²⌋."""
    hashes = mix64(ids.astype(np.uint64))
    return np.array([((int(h) >> 32) * n_shards) >> 32 for h in hashes], np.int32)


def random_bits(seed: int, keys: I64, columns: I64) -> U64:
    row = mix64(mix64(np.array([seed]).astype(np.uint64)) ^ keys.astype(np.uint64))
    return mix64(row + (columns.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))


def initial_values(initializer: Initializer, seed: int, keys: I64, columns: I64) -> F32:
    """Values of cells (keys, columns), broadcast against each other."""
    bits = random_bits(seed, keys, columns)
    if isinstance(initializer, Constant):
        return np.full(bits.shape, initializer.value, np.float32)
    if isinstance(initializer, Uniform):
        fraction = (bits >> np.uint64(40)).astype(np.float32) * _f4(2.0**-24)
        low, high = _f4(initializer.low), _f4(initializer.high)
        return low + (high - low) * fraction
    numbers = _standard_normal(bits)
    while isinstance(initializer, TruncatedNormal) and (far := np.abs(numbers) > 2.0).any():
        bits[far] = mix64(bits[far] + np.uint64(0x9E3779B97F4A7C15))
        numbers[far] = _standard_normal(bits[far])
    return (_f4(initializer.mean) + float(_f4(initializer.std)) * numbers).astype(np.float32)


def _standard_normal(bits: U64) -> F64:
    first = ((bits >> np.uint64(32)).astype(np.float64) + 1.0) * 2.0**-32
    second = (bits & np.uint64(0xFFFFFFFF)).astype(np.float64) * 2.0**-32
    numbers: F64 = np.sqrt(-2.0 * np.log(first)) * np.cos(2.0 * np.pi * second)
    return numbers


# --- dense ---


def add_(out: F32, x: F32) -> None:
    out += x


def scale_(out: F32, factor: float) -> None:
    out *= _f4(factor)


def axpy_(out: F32, factor: float, x: F32) -> None:
    out += _f4(factor) * x


def copy(src: F32, dst: F32) -> None:
    dst[:] = src


def sum_squares(x: F32) -> float:
    return math.fsum(float(value) ** 2 for value in x)


# --- rows ---


def unique(ids: I64) -> tuple[I64, I32]:
    slots: dict[int, int] = {}
    inverse = [slots.setdefault(id_, len(slots)) for id_ in ids.tolist()]
    return np.array(list(slots), np.int64), np.array(inverse, np.int32)


def gather(src: F32, index: I32, out: F32) -> None:
    out[:] = src[index]


def scatter_add_(out: F32, index: I32, values: F32) -> None:
    np.add.at(out, index, values)


def merge(rows: SelectedRows) -> SelectedRows:
    ids, inverse = unique(rows.ids)
    values = np.zeros((len(ids), rows.values.shape[1]), np.float32)
    np.add.at(values, inverse, rows.values)
    return SelectedRows(ids, values, rows.height, unique=True)


def partition_ids(ids: I64, shard_bounds: I64, n_shards: int) -> tuple[I32, I64]:
    owners = np.searchsorted(shard_bounds, virtual_shards(ids, n_shards), side="right") - 1
    order = np.argsort(owners, kind="stable").astype(np.int32)
    return order, np.bincount(owners, minlength=len(shard_bounds) - 1).astype(np.int64)


# --- pooling ---


def pool_rows(rows: F32, index: I32, offsets: I64, pool: str) -> F32:
    """(b, d): the pooled segments, by the names of `pooling.POOLS` or "max"; an empty one is 0."""
    out = np.zeros((len(offsets) - 1, rows.shape[1]), rows.dtype)
    for i, (start, stop) in enumerate(itertools.pairwise(offsets)):
        segment = rows[index[start:stop]]
        if len(segment) and pool in ("max", "first", "last"):
            out[i] = {"max": segment.max(axis=0), "first": segment[0], "last": segment[-1]}[pool]
            continue
        for row in segment:
            out[i] += row
        count = max(len(segment), 1)
        out[i] /= {"average": count, "sqrt": np.float32(math.sqrt(count))}.get(pool, 1)
    return out


# --- nn ---


def bias_relu_(x: F32, bias: F32) -> None:
    np.maximum(x + bias, 0, out=x)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x.astype(np.float64)))


def sigmoid_cross_entropy(logits: Array, labels: Array) -> Array:
    x, z = logits.astype(np.float64), labels.astype(np.float64)
    return np.logaddexp(0, x) - x * z


def auc(probabilities: Array, labels: Array) -> float:
    """Over all pairs of a positive and a negative: the share won, ties counting half."""
    positives, negatives = probabilities[labels > 0.5], probabilities[labels <= 0.5]
    wins = positives[:, None] > negatives
    ties = positives[:, None] == negatives
    return float((wins + ties / 2).mean())
