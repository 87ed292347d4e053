"""Rows with 16-bit weights: the float32 update of a float32 image, rounded when it is stored."""

from __future__ import annotations

import numpy as np
import pytest

from psrt.core import specs
from psrt.kernels.optimizers import RowTable, TouchedRows, rule_of
from psrt.kernels.tables.half_rows import HalfRowStore
from psrt.kernels.tables.initialize import encode, fill_rows
from psrt.kernels.tables.row_layout import row_layout
from psrt.kernels.tables.row_store import no_hints
from psrt.kernels.tables.row_update import RowUpdate
from tests.support.optimizer_formulas import OPTIMIZERS

START, SEED = specs.Uniform(-0.5, 0.5), 7
IDS = np.arange(40, dtype=np.int64) * 1_000_003
every_storage = pytest.mark.parametrize("storage", ["float16", "bfloat16"])


def rounded(weights: np.ndarray, storage: str) -> np.ndarray:
    if storage == "float16":
        return weights.astype(np.float16).astype(np.float32)
    bits = weights.astype(np.float32).view(np.uint32).astype(np.uint64)
    bits += 0x7FFF + ((bits >> 16) & 1)
    return (bits & 0xFFFF0000).astype(np.uint32).view(np.float32)


def initial_rows(ids: np.ndarray, width: int) -> np.ndarray:
    out = np.empty((len(ids), width), np.float32)
    fill_rows(START, SEED, ids, out)
    return out


def store_of(storage: str, width: int, first_state: np.ndarray) -> HalfRowStore:
    layout = row_layout(width, len(first_state), storage)
    return HalfRowStore(layout, (*encode(START), SEED), first_state)


def read(store: HalfRowStore, ids: np.ndarray) -> np.ndarray:
    out = np.empty((len(ids), store.layout.width), np.float32)
    order = np.arange(len(ids), dtype=np.int32)
    store.read(ids, order, np.empty_like(order), out)
    return out


class Twin:
    """Rows in float32 arrays, rounded after each update."""

    def __init__(self, optimizer: specs.Optimizer, storage: str, width: int) -> None:
        self.rule = rule_of(optimizer)
        self.storage, self.width = storage, width
        first = self.rule.first_state(width)
        self.beside = np.zeros((len(IDS), 2 + len(first)), np.float32)
        self.beside[:, 2:] = first
        self.weights = rounded(initial_rows(IDS, width), storage)

    def update(self, slots: np.ndarray, gradients: np.ndarray, version: int) -> None:
        headers = self.beside.view(np.int32)
        headers[slots, 0] = version
        headers[slots, 1] += 1
        table = RowTable(self.weights, 0, self.beside, 2)
        touched = TouchedRows(slots, np.arange(len(slots), dtype=np.int32), gradients)
        self.rule.update_rows(table, touched, 0.1, version)
        if self.rule.moves_all_rows:
            self.rule.update_rest(table, len(IDS), version, self.width, 0.1, version)
        self.weights[:] = rounded(self.weights, self.storage)


@every_storage
@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_every_optimizer_computes_in_float32_and_stores_rounded(
    storage: str, optimizer: specs.Optimizer
) -> None:
    width, rng = 5, np.random.default_rng(3)
    twin = Twin(optimizer, storage, width)
    store = store_of(storage, width, twin.rule.first_state(width))
    everyone = np.arange(len(IDS), dtype=np.int32)
    for version in range(1, 7):
        slots = everyone if version == 1 else rng.permutation(everyone)[:25]
        gradients = rng.standard_normal((len(slots), width), np.float32)
        order, found = np.arange(len(slots), dtype=np.int32), no_hints(len(slots))
        update = RowUpdate(twin.rule, IDS[slots], gradients, version, 0.1)
        update.apply(store, order, found)
        update.apply_to_rest(store)
        twin.update(slots, gradients, version)

    np.testing.assert_array_equal(read(store, IDS), twin.weights)


@every_storage
@pytest.mark.parametrize("width", [1, 2, 17, 4096])
def test_an_untouched_row_reads_as_it_would_be_stored(storage: str, width: int) -> None:
    store = store_of(storage, width, np.empty(0, np.float32))
    before = read(store, IDS)

    store.touch(IDS, np.arange(len(IDS), dtype=np.int32), no_hints(len(IDS)))

    np.testing.assert_array_equal(before, rounded(initial_rows(IDS, width), storage))
    np.testing.assert_array_equal(read(store, IDS), before)
    np.testing.assert_array_equal(store.page(0, store.rows)[1], before)


@every_storage
def test_an_id_that_stands_twice_is_updated_twice(storage: str) -> None:
    rule = rule_of(specs.Momentum())
    store = store_of(storage, 3, rule.first_state(3))
    ids, gradients = np.array([7, 8, 7]), np.full((3, 3), 0.5, np.float32)

    update = RowUpdate(rule, ids, gradients, 1, 0.125)
    update.apply(store, np.arange(3, dtype=np.int32), no_hints(3))

    headers = store.slab.rows[:2].view(np.int32)
    start = rounded(initial_rows(np.array([7, 8]), 3), storage)
    once = start - np.float32(0.125) * np.float32(0.5)
    twice = once - np.float32(0.125) * (np.float32(0.9) * np.float32(0.5) + np.float32(0.5))
    assert headers[:, :2].tolist() == [[1, 2], [1, 1]]
    expected = rounded(np.stack([twice[0], once[1]]), storage)
    np.testing.assert_allclose(read(store, np.array([7, 8])), expected, rtol=2**-7)
