"""A trainer's local table updates rows to the bits of a pserver's table."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from psrt.communicator.geo.geo_table import GeoTable
from psrt.communicator.geo.local_table import LocalTable
from psrt.core import specs
from psrt.core.specs.rates import rate_at
from psrt.kernels.tables.initialize import fill_rows
from psrt.pserver.tables.sparse_table import SparseTable
from tests.support.optimizer_formulas import CTR, OPTIMIZERS, ROW_WISE

WIDTH = 4
EVERY = OPTIMIZERS | CTR | ROW_WISE
DECAY = specs.ExponentialDecay(0.5, 1, 0.5)
EVERY_KIND = pytest.mark.parametrize("kind", [LocalTable, GeoTable])


def spec_of(optimizer: specs.Optimizer, padding_id: int | None = None) -> specs.SparseTableSpec:
    start = specs.Uniform(-0.5, 0.5)
    return specs.SparseTableSpec("emb", WIDTH, start, optimizer, DECAY, 7, padding_id=padding_id)


def batch(step: int, rows: int = 30) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(step)
    ids = rng.choice(np.arange(-50, 50), rows, replace=False) * (2**55 + 1)
    return ids.astype(np.int64), rng.normal(size=(rows, WIDTH)).astype(np.float32)


@pytest.mark.parametrize("optimizer", EVERY.values(), ids=EVERY)
@EVERY_KIND
def test_rows_move_as_on_a_pserver(
    kind: Callable[[specs.SparseTableSpec], LocalTable], optimizer: specs.Optimizer
) -> None:
    spec = spec_of(optimizer, padding_id=0)
    here, there = kind(spec), SparseTable(spec, stripes=3)

    for step in range(6):
        ids, gradients = batch(step)
        here.apply(ids, gradients)
        there.apply(there.route(ids), gradients, rate_at(DECAY, step))

    ids = np.arange(-60, 60, dtype=np.int64) * (2**55 + 1)
    expected = np.empty((len(ids), WIDTH), np.float32)
    there.read(there.route(ids), expected)
    np.testing.assert_array_equal(here.read(ids), expected)
    assert len(here) == there.rows


@EVERY_KIND
def test_an_untouched_row_reads_as_its_initial_value_and_is_not_kept(
    kind: Callable[[specs.SparseTableSpec], LocalTable],
) -> None:
    table, ids = kind(spec_of(specs.Sgd())), np.array([2**63 - 1, -(2**63), 0], np.int64)
    expected = np.empty((3, WIDTH), np.float32)
    fill_rows(table.spec.initializer, table.spec.seed, ids, expected)

    np.testing.assert_array_equal(table.read(ids), expected)
    assert len(table) == 0


def test_the_schedule_goes_on_by_the_steps_of_other_trainers() -> None:
    table, ones = LocalTable(spec_of(specs.Sgd())), np.ones((1, WIDTH), np.float32)
    ids = np.array([1], np.int64)

    moved = []
    for others in (0, 0, 10):
        table.other_steps = others
        before = table.read(ids)
        table.apply(ids, ones)
        moved.append(float((before - table.read(ids))[0, 0]))

    assert moved == pytest.approx([0.5, 0.25, 0.5 * 0.5**12], abs=1e-7)


@EVERY_KIND
def test_a_table_grows_and_pages_hold_every_row_once(
    kind: Callable[[specs.SparseTableSpec], LocalTable],
) -> None:
    table = kind(spec_of(specs.Adagrad()))
    ids = np.random.default_rng(0).permutation(20_000).astype(np.int64)
    for part in np.array_split(ids, 7):
        table.apply(part, np.ones((len(part), WIDTH), np.float32))

    pages = list(table.pages(3000))

    assert sorted(np.concatenate([page_ids for page_ids, _ in pages]).tolist()) == list(
        range(20_000)
    )
    for page_ids, weights in pages:
        np.testing.assert_array_equal(weights, table.read(page_ids))


def test_a_page_stays_as_it_is_while_the_table_grows() -> None:
    table = LocalTable(spec_of(specs.Sgd()))
    table.apply(np.arange(10), np.ones((10, WIDTH), np.float32))
    ((ids, weights),) = table.pages(100)
    kept = weights.copy()

    table.apply(np.arange(100_000), np.ones((100_000, WIDTH), np.float32))

    assert ids.tolist() == list(range(10))
    np.testing.assert_array_equal(weights, kept)
