"""Changes that a Geo trainer's table sends and receives; test_agreement.py covers rounding."""

from __future__ import annotations

import numpy as np
import pytest

from psrt.communicator.geo.geo_table import GeoTable
from psrt.core import specs
from psrt.kernels.tables.initialize import fill_rows

WIDTH = 3


def table_of(optimizer: specs.Optimizer | None = None, padding_id: int | None = None) -> GeoTable:
    return GeoTable(
        specs.SparseTableSpec(
            *("emb", WIDTH, specs.Uniform(-1.0, 1.0), optimizer or specs.Sgd()),
            *(specs.ConstantRate(1.0), 5),
            padding_id=padding_id,
        )
    )


def initial(ids: list[int]) -> np.ndarray:
    out = np.empty((len(ids), WIDTH), np.float32)
    fill_rows(specs.Uniform(-1.0, 1.0), 5, np.array(ids, np.int64), out)
    return out


def apply(table: GeoTable, ids: list[int], gradient: float) -> None:
    table.apply(np.array(ids, np.int64), np.full((len(ids), WIDTH), gradient, np.float32))


def test_the_first_gift_of_a_row_is_its_way_from_the_initial_value() -> None:
    table = table_of()
    apply(table, [7, -1], 2.0)

    given = table.give(1)

    assert given.ids.tolist() == [7, -1]
    np.testing.assert_allclose(given.values, -2.0, atol=1e-6)


def test_only_rows_touched_since_the_last_time_are_given() -> None:
    table = table_of()
    apply(table, [1, 2, 3], 1.0)
    table.give(2)
    apply(table, [3, 4], 1.0)
    apply(table, [4], 1.0)

    assert table.give(2).ids.tolist() == [3, 4]
    assert table.give(2).ids.tolist() == []


def test_what_a_share_leaves_behind_is_in_the_gift_of_all_rows() -> None:
    table = table_of()
    apply(table, [1, 2], 4.0)
    shared = table.give(4)
    left = table.give(1, all_rows=True)

    assert left.ids.tolist() == [1, 2]
    np.testing.assert_allclose(shared.values, -1.0, atol=1e-6)
    np.testing.assert_allclose(left.values, -3.0, atol=1e-6)
    assert len(table.give(1, all_rows=True).ids) == 0


def test_a_row_that_only_others_changed_becomes_theirs_and_is_not_given_back() -> None:
    table, theirs = table_of(), np.array([[0.1, 1e8, -3.0]], np.float32)

    table.take(np.array([9], np.int64), theirs)

    np.testing.assert_array_equal(table.read(np.array([9])), theirs)
    assert len(table.give(1, all_rows=True).ids) == 0


def test_local_changes_since_the_last_give_stay_on_top_of_taken_values() -> None:
    table = table_of()
    apply(table, [9], 1.0)
    table.give(1)
    apply(table, [9], 0.5)

    table.take(np.array([9], np.int64), initial([9]) + 10)

    np.testing.assert_allclose(table.read(np.array([9])), initial([9]) + 9.5, atol=1e-5)
    np.testing.assert_allclose(table.give(1).values, -0.5, atol=1e-5)


def test_a_row_taken_from_others_begins_its_own_count_of_updates() -> None:
    ids = np.array([9], np.int64)
    taken, fresh = table_of(specs.Adam()), table_of(specs.Adam())
    taken.take(ids, initial([9]))

    for table in (taken, fresh):
        apply(table, [9], 0.3)

    np.testing.assert_array_equal(taken.read(ids), fresh.read(ids))


def test_an_optimizer_that_moves_all_rows_gives_all_rows() -> None:
    table = table_of(specs.Adam(lazy=False))
    apply(table, [1, 2], 1.0)
    table.give(1)

    apply(table, [2], 1.0)

    assert table.give(1).ids.tolist() == [1, 2]


def test_a_padding_row_is_neither_given_nor_taken() -> None:
    table = table_of(padding_id=0)
    apply(table, [0, 1], 1.0)

    assert table.give(1).ids.tolist() == [1]
    table.take(np.array([0, 1], np.int64), np.full((2, WIDTH), 5, np.float32))
    np.testing.assert_array_equal(table.read(np.array([0, 1]))[0], 0.0)
    np.testing.assert_array_equal(table.read(np.array([0, 1]))[1], 5.0)


@pytest.mark.parametrize("rows", [1, 5000])
def test_gifts_survive_that_the_table_grows(rows: int) -> None:
    table = table_of()
    apply(table, [10**6], 1.0)
    given = table.give(1)
    values = given.values.copy()

    apply(table, list(range(rows)), 1.0)

    np.testing.assert_array_equal(given.values, values)
    assert sorted(table.give(1).ids.tolist()) == list(range(rows))
