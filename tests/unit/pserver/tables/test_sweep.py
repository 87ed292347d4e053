"""Sweeps over all rows of a table while rows are dropped."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from psrt.core import specs
from psrt.kernels.tables.row_layout import ID_WORD
from psrt.pserver.tables.sparse_table import SparseTable

WIDTH = 2
IDS = np.arange(20_000, dtype=np.int64) * 977


def table_of(stripes: int = 3, **changes: Any) -> SparseTable:
    rule = (specs.Constant(0.0), specs.Sgd(), specs.ConstantRate(1.0))
    table = SparseTable(specs.SparseTableSpec("t", WIDTH, *rule, 7, **changes), stripes)
    push(table, IDS)
    return table


def push(table: SparseTable, ids: np.ndarray) -> None:
    table.apply(table.route(ids), np.full((len(ids), WIDTH), -1.0, np.float32), 1.0)


def read(table: SparseTable, ids: np.ndarray) -> np.ndarray:
    out = np.empty((len(ids), WIDTH), np.float32)
    table.read(table.route(ids), out)
    return out[:, 0]


def ids_in(rows: np.ndarray) -> np.ndarray:
    return rows.view(np.int64)[:, ID_WORD // 2]


class Judge:
    """Drops `doomed` ids and counts how often it gets each."""

    def __init__(self, doomed: np.ndarray) -> None:
        self.doomed = doomed
        self.shown: Counter[int] = Counter()

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        self.shown.update(ids_in(rows).tolist())
        return np.isin(ids_in(rows), self.doomed).astype(np.uint8)


def sweep(table: SparseTable, judge: Judge, page: int) -> int:
    total, cursor = 0, -1
    while cursor:
        dropped, cursor = table.sweep(max(cursor, 0), page, judge)
        total += dropped
    return total


@pytest.mark.parametrize("storage", specs.STORAGES)
@pytest.mark.parametrize("page", [97, 100_000])
@pytest.mark.parametrize("kept", [1.0, 0.5, 0.01, 0.0])
def test_a_sweep_shows_each_row_once_and_drops_what_it_is_told(
    kept: float, page: int, storage: str
) -> None:
    table, rng = table_of(storage=storage), np.random.default_rng(2)
    judge = Judge(rng.permutation(IDS)[int(kept * len(IDS)) :])

    dropped = sweep(table, judge, page)

    assert dropped == len(judge.doomed)
    assert table.rows == len(IDS) - dropped
    assert judge.shown == Counter(IDS.tolist())
    np.testing.assert_array_equal(read(table, IDS), ~np.isin(IDS, judge.doomed))


def test_a_dropped_id_begins_anew() -> None:
    table = table_of()
    sweep(table, Judge(IDS), 1000)

    push(table, IDS[:10])

    assert table.rows == 10
    np.testing.assert_array_equal(read(table, IDS[:11]), [1.0] * 10 + [0.0])


def test_memory_shrinks_with_the_rows_and_what_is_left_stays_dense() -> None:
    table = table_of(stripes=1)
    before = table.nbytes

    sweep(table, Judge(IDS[: len(IDS) * 9 // 10]), 1000)

    assert table.nbytes < before / 4
    assert table.describe()["load"] > 0.1


def test_rows_may_be_changed_by_who_judges_them() -> None:
    table = table_of()
    at = table.layout.weights_at

    def halve(rows: np.ndarray) -> np.ndarray:
        rows[:, at : at + WIDTH] /= 2
        return np.zeros(len(rows), np.uint8)

    cursor = -1
    while cursor:
        _, cursor = table.sweep(max(cursor, 0), 512, halve)

    np.testing.assert_array_equal(read(table, IDS), 0.5)


@pytest.mark.parametrize("seed", range(5))
def test_an_export_misses_no_row_that_stays_though_others_are_dropped_meanwhile(seed: int) -> None:
    table, rng = table_of(), np.random.default_rng(seed)
    doomed = rng.permutation(IDS)[:15_000]
    judge, sweep_cursor = Judge(doomed), 0
    seen: Counter[int] = Counter()
    cursor = -1
    while cursor:
        ids, _, cursor = table.export(max(cursor, 0), 500)
        seen.update(ids.tolist())
        for _ in range(int(rng.integers(0, 4))):
            _, sweep_cursor = table.sweep(sweep_cursor, 400, judge)

    staying = set(IDS.tolist()) - set(doomed.tolist())
    assert staying <= set(seen)
    assert set(seen) <= set(IDS.tolist())


@pytest.mark.parametrize("cursor", [1 << 40 | 7, 99 << 40 | 5, (1 << 63) - 1])
def test_a_cursor_that_no_page_gave_out_ends_the_walk_or_goes_on(cursor: int) -> None:
    table = table_of()

    ids, rows, _ = table.export(cursor, 10)

    assert len(ids) == len(rows) <= 10
