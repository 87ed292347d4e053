"""Kernels run on four threads at once and give what they give alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from psrt.core.specs import Adam, Normal
from psrt.kernels.ops import nn, pooling
from psrt.kernels.optimizers import RowTable, TouchedRows, rule_of, update_kernels
from psrt.kernels.tables import initialize, rows

REPEATS = 20


def numbers(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def adagrad(seed):
    w, m = numbers(seed, 5000), np.zeros(5000, np.float32)
    update_kernels.adagrad.block(w, m, numbers(seed + 1, 5000), 0.1, 1e-6)
    return w


def adam_rows(seed):
    slab = abs(numbers(seed, 100, 2 + 48))
    slab[:, :2].view(np.int32)[:] = 1
    slots = np.random.default_rng(seed).integers(0, 100, 500).astype(np.int32)
    table = RowTable(slab, 2, slab, 18)
    touched = TouchedRows(slots, np.arange(500, dtype=np.int32), numbers(seed + 1, 500, 16))
    rule_of(Adam(beta2=0.99)).update_rows(table, touched, 0.1, 1)
    return slab


def unique(seed):
    ids = np.random.default_rng(seed).integers(0, 3000, 5000)
    return np.concatenate(rows.unique(ids))


def partition(seed):
    ids = np.random.default_rng(seed).integers(0, 3000, 5000)
    return np.concatenate(rows.partition_ids(ids, np.array([0, 300, 1024]), 1024))


def initial_rows(seed):
    out = np.empty((500, 16), np.float32)
    initialize.fill_rows(Normal(), seed, np.arange(500), out)
    return out


def pooled(seed):
    out = np.empty((100, 16), np.float32)
    index = np.random.default_rng(seed).integers(0, 50, 500).astype(np.int32)
    offsets = np.arange(0, 501, 5)[None]
    pooling.pool_rows(numbers(seed, 50, 16), index, offsets, pooling.SUM, out)
    return out


def sigmoid(seed):
    out = np.empty(5000, np.float32)
    nn.sigmoid(numbers(seed, 5000), out)
    return out


@pytest.mark.parametrize(
    "run", [adagrad, adam_rows, unique, partition, initial_rows, pooled, sigmoid]
)
def test_four_threads_at_once_get_what_each_gets_alone(run: Callable[[int], np.ndarray]):
    alone = [run(seed) for seed in range(4)]
    start = threading.Barrier(4)

    def repeatedly(seed: int) -> list[np.ndarray]:
        start.wait(30)
        return [run(seed) for _ in range(REPEATS)]

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(repeatedly, range(4)))

    for expected, results in zip(alone, together, strict=True):
        for result in results:
            np.testing.assert_array_equal(result, expected)
