"""A store that is prepared for rows of a freeze holds them as one that grew does."""

from __future__ import annotations

import numpy as np
import pytest

from psrt.kernels.tables import leaves
from psrt.kernels.tables.id_index import IdIndex
from psrt.kernels.tables.leaves import CELLS
from psrt.kernels.tables.row_store import RowStore, no_hints
from tests.unit.kernels.tables.test_row_store import check_index, drop, store_of, touch

MANY = 40_000


def rows_of(count: int) -> np.ndarray:
    """Rows with ids that lie anywhere, as a freeze has them."""
    store = store_of()
    touch(store, np.random.default_rng(count).integers(-(1 << 62), 1 << 62, count))
    return store.slab.rows[: store.rows].copy()


def put(store: RowStore, rows: np.ndarray) -> None:
    ids = rows.view(np.int64)[:, leaves._ID].copy()
    store.put(ids, np.arange(len(ids), dtype=np.int32), no_hints(len(ids)), rows)


@pytest.mark.parametrize("ids", [0, 1, 2000, CELLS, MANY, 5_000_000])
def test_the_leaves_of_an_index_cover_each_hash_once(ids: int) -> None:
    found = leaves.leaves_of(ids)

    deepest = max(depth for _, depth in found)
    covered = np.zeros(1 << deepest, int)
    for prefix, depth in found:
        covered[prefix :: 1 << depth] += 1
        assert ids / (1 << depth) < leaves.limit_of(prefix, depth)
    assert (covered == 1).all()


def test_a_store_that_expects_its_rows_splits_no_leaf(monkeypatch: pytest.MonkeyPatch) -> None:
    grown, store, rows = store_of(), store_of(), rows_of(MANY)
    put(grown, rows)

    store.expect(MANY)
    monkeypatch.setattr(IdIndex, "grow", lambda *_: pytest.fail("a leaf was split"))
    put(store, rows)

    check_index(store)
    np.testing.assert_array_equal(store.slab.rows[:MANY], rows)
    assert store.cells <= 1.2 * grown.cells


@pytest.mark.parametrize("expected", [0, MANY // 8, 8 * MANY])
def test_a_wrong_expectation_costs_memory_or_splits_and_no_row(expected: int) -> None:
    store, rows = store_of(), rows_of(MANY)

    store.expect(expected)
    put(store, rows)

    check_index(store)
    np.testing.assert_array_equal(store.slab.rows[:MANY], rows)


def test_the_latest_expectation_of_an_empty_store_counts() -> None:
    store, rows = store_of(), rows_of(MANY)

    store.expect(8 * MANY)
    store.expect(MANY)
    put(store, rows)

    check_index(store)
    assert store.cells < 4 * MANY


def test_a_store_with_rows_expects_nothing() -> None:
    store, rows = store_of(), rows_of(100)
    put(store, rows)

    store.expect(MANY)

    check_index(store)
    assert store.rows == 100


def test_a_store_that_expected_more_gives_memory_back_when_rows_are_dropped() -> None:
    store, rows = store_of(), rows_of(MANY)
    store.expect(8 * MANY)
    put(store, rows)
    before = store.cells

    drop(store, store.ids()[: MANY // 2])

    check_index(store)
    assert store.cells < before
