"""The contract of freezes, for every kind of table and every optimizer.

A table is frozen at a random point of random pushes, and handed out while pushes go on. What is
restored must equal a twin that stopped at the freeze: at once, and after further pushes to both.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from psrt.core import specs
from psrt.kernels.optimizers import registry
from tests.support.frozen import (
    DENSE,
    SIZE,
    SPARSE,
    Push,
    apply,
    apply_share,
    block_of,
    ids_of_pages,
    in_between,
    pushes_of,
    read,
    share_of,
    state_of,
    state_of_block,
    table_of,
)

every_sparse = pytest.mark.parametrize("spec", SPARSE.values(), ids=SPARSE)
every_dense = pytest.mark.parametrize("spec", DENSE.values(), ids=DENSE)


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of a few rows, so that many pushes come in between."""
    monkeypatch.setattr("psrt.pserver.frozen.frozen_rows.PAGE_BYTES", 3_000)
    monkeypatch.setattr("psrt.pserver.frozen.frozen_records.SLICE_BYTES", 1_000)


def test_every_optimizer_is_among_the_tables() -> None:
    assert {type(spec.optimizer) for spec in SPARSE.values()} == set(registry._RULES)
    assert {type(spec.optimizer) for spec in DENSE.values()} == set(registry._RULES)


@every_sparse
@pytest.mark.parametrize("seed", range(3))
def test_pages_restore_the_table_as_it_was_at_the_freeze(
    spec: specs.SparseTableSpec, seed: int
) -> None:
    pushes = pushes_of(seed, 40)
    stop = int(np.random.default_rng(seed).integers(1, 20))
    table, twin, restored = (table_of(spec, stripes) for stripes in (3, 3, 5))
    for each in table, twin:
        apply(each, pushes[:stop])

    with table.freeze() as frozen:
        pages = in_between(frozen.pages(), table, pushes[stop:])
    restored.restore([(json.loads(json.dumps(frozen.meta)), pages)])

    assert len(pages) > 4
    assert state_of(restored) == state_of(twin)
    assert_equal_reads(restored, twin, pushes)
    for each in restored, twin:
        apply(each, pushes[stop:])
    assert state_of(restored) == state_of(twin) == state_of(table)


@every_sparse
def test_each_row_is_handed_out_once(spec: specs.SparseTableSpec) -> None:
    pushes, table, twin = pushes_of(9, 40), table_of(spec), table_of(spec)
    for each in table, twin:
        apply(each, pushes[:12])

    with table.freeze() as frozen:
        pages = in_between(frozen.pages(), table, pushes[12:])

    of_twin = state_of(twin)
    assert sorted(ids_of_pages(pages)) == sorted(of_twin[0])
    if spec.growth is not None:
        assert sorted(ids_of_pages(pages, "long_rows")) == sorted(of_twin[5])


@every_sparse
def test_a_table_moves_to_other_numbers_of_pservers_without_a_changed_bit(
    spec: specs.SparseTableSpec,
) -> None:
    pushes, twin = pushes_of(4, 24), table_of(spec)
    tables = pservers_of(spec, 1)
    for first, count in ((0, 3), (8, 2), (16, 1)):
        apply(twin, pushes[first : first + 8])
        apply_share(tables, pushes[first : first + 8])
        tables = moved(tables, count)

        assert state_of(*tables) == state_of(twin)
        for table in tables:
            assert_equal_reads(table, twin, [share_of(table, push) for push in pushes])


def pservers_of(spec: specs.SparseTableSpec, count: int) -> list[Any]:
    bounds = [1024 * number // count for number in range(count + 1)]
    return [
        table_of(replace(spec, first_shard=first, last_shard=last), 2)
        for first, last in itertools.pairwise(bounds)
    ]


def moved(tables: Sequence[Any], count: int) -> list[Any]:
    """The rows of `tables` on `count` pservers, each of which gets all pages."""
    freezes = [table.freeze() for table in tables]
    sources = [(frozen.meta, list(frozen.pages())) for frozen in freezes]
    restored = pservers_of(tables[0].spec, count)
    for table in restored:
        table.restore(sources)
    return restored


def assert_equal_reads(table: Any, twin: Any, pushes: Sequence[Push]) -> None:
    ids = np.unique(np.concatenate([push.ids for push in pushes]))
    assert read(table, ids) == read(twin, ids)


# --- deltas ---


@every_sparse
@pytest.mark.parametrize("seed", range(2))
def test_a_full_freeze_and_its_deltas_restore_the_table_as_it_was(
    spec: specs.SparseTableSpec, seed: int
) -> None:
    pushes, rng = pushes_of(seed, 60, batch=40), np.random.default_rng(seed)
    table, twin, restored = (table_of(spec, stripes) for stripes in (3, 3, 2))
    table.track_changes()
    sources, done = [], 0
    for number in range(4):
        stop = done + int(rng.integers(1, 6))
        for each in table, twin:
            apply(each, pushes[done:stop])
            drop_some(each, number)
        later = pushes[stop : stop + 3]
        with table.freeze(is_delta=number > 0) as frozen:
            pages = in_between(frozen.pages(), table, later)
            if number != 2:  # the third is lost, so the fourth has its changes, too
                frozen.confirm()
                sources.append((frozen.meta, pages))
        at_freeze = state_of(twin)
        apply(twin, later)
        done = stop + 3

    restored.restore(sources)

    assert [meta["kind"] for meta, _ in sources] == ["full", "delta", "delta"]
    assert state_of(restored) == at_freeze


def drop_some(table: Any, number: int) -> None:
    """Sweep some rows away, which ones depends on their id alone."""
    cursor = -1
    while cursor:
        _, cursor = table.sweep(
            max(cursor, 0), 50, lambda rows: (ids_in(rows) % 7 == number).astype(np.uint8)
        )


def ids_in(rows: np.ndarray) -> np.ndarray:
    return rows.view(np.int64)[:, 1]


def test_a_delta_of_a_few_rows_has_these_rows_only() -> None:
    table, (first, second, *_) = table_of(SPARSE["adagrad"]), pushes_of(3, 8)
    apply(table, [first])
    table.track_changes()
    with table.freeze() as frozen:
        frozen.confirm()
    few = Push(second.ids[:9], second.gradients[:9], second.counts[:9], 99)
    apply(table, [few])

    with table.freeze(is_delta=True) as frozen:
        pages = list(frozen.pages())

    assert sorted(ids_of_pages(pages)) == sorted(few.ids.tolist())


# --- dense tables ---


def gradients(seed: int, count: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, SIZE), np.float32)


@every_dense
def test_a_frozen_block_restores_values_state_and_version(spec: specs.DenseTableSpec) -> None:
    pushes = gradients(5, 9)
    table, twin, restored = block_of(spec, pushes[:4]), block_of(spec, pushes[:4]), block_of(spec)

    with table.freeze() as frozen:
        for gradient in pushes[4:]:
            table.apply(gradient, 0.1)
        restored.restore([(json.loads(json.dumps(frozen.meta)), list(frozen.pages()))])

    assert state_of_block(restored) == state_of_block(twin)
    for gradient in pushes[4:]:
        restored.apply(gradient, 0.1)
    assert state_of_block(restored) == state_of_block(table)


@every_dense
def test_a_parameter_is_cut_otherwise_without_a_changed_bit(spec: specs.DenseTableSpec) -> None:
    if isinstance(spec.optimizer, specs.LAYER_WISE):
        pytest.skip("blocks of these are never cut")
    pushes = gradients(6, 6)
    tables, twin = [block_of(spec)], block_of(spec)
    for first, bounds in ((0, (0, 20, 41, 60)), (2, (0, 33, 60)), (4, (0, 60))):
        for gradient in pushes[first : first + 2]:
            twin.apply(gradient, 0.1)
            for table in tables:
                part = slice(table.spec.offset, table.spec.offset + table.spec.size)
                table.apply(np.ascontiguousarray(gradient[part]), 0.1)
        tables = cut(tables, bounds)

        assert np.concatenate([each.read()[0] for each in tables]).tobytes() == (
            twin.read()[0].tobytes()
        )
        assert {each.version for each in tables} == {twin.version}
    assert state_of_block(tables[0]) == state_of_block(twin)


def cut(tables: Sequence[Any], bounds: Sequence[int]) -> list[Any]:
    freezes = [table.freeze() for table in tables]
    sources = [(frozen.meta, list(frozen.pages())) for frozen in freezes]
    spec = tables[0].spec
    blocks = [
        block_of(replace(spec, name=f"w.block{first}", offset=first, size=end - first))
        for first, end in itertools.pairwise(bounds)
    ]
    for block in blocks:
        block.restore(sources)
    return blocks


@every_dense
def test_deltas_of_a_block_have_it_if_it_has_changed(spec: specs.DenseTableSpec) -> None:
    pushes = gradients(7, 5)
    table, restored = block_of(spec, pushes[:2]), block_of(spec)
    table.track_changes()
    sources = []
    for number, gradient in enumerate([None, pushes[2], None, pushes[3]]):
        if gradient is not None:
            table.apply(gradient, 0.1)
        with table.freeze(is_delta=number > 0) as frozen:
            sources.append((frozen.meta, list(frozen.pages())))
            frozen.confirm()

    restored.restore(sources)

    assert [len(pages) for _, pages in sources] == [1, 1, 0, 1]
    assert state_of_block(restored) == state_of_block(table)
