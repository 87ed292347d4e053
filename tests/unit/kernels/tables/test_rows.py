"""Dedupe, gather, scatter, merge and partition agree with their twins."""

from __future__ import annotations

import numpy as np
import pytest

from psrt.core.tensors import SelectedRows
from psrt.kernels.tables import rows
from tests.support import twins

RNG = np.random.default_rng(0)
ID_SETS = {
    "none": np.empty(0, np.int64),
    "one": np.array([5]),
    "equal": np.full(100, -1),
    "extreme": np.array([0, -1, 2**63 - 1, -(2**63), 0, -1]),
    "few": RNG.integers(-50, 50, 1000),
    "distinct": RNG.permutation(5000) * 7919,
    "skewed": RNG.zipf(1.2, 13_312).astype(np.int64),
}
for each in ID_SETS.values():
    each.flags.writeable = False


def read_only(array):
    array.flags.writeable = False
    return array


def floats(*shape):
    return read_only(np.random.default_rng(1).standard_normal(shape).astype(np.float32))


@pytest.mark.parametrize("name", ID_SETS)
def test_unique_equals_its_twin(name):
    ids, inverse = rows.unique(ID_SETS[name])

    expected_ids, expected_inverse = twins.unique(ID_SETS[name])
    np.testing.assert_array_equal(ids, expected_ids)
    np.testing.assert_array_equal(inverse, expected_inverse)
    assert (ids.dtype, inverse.dtype) == (np.int64, np.int32)


def test_kept_results_survive_one_call_and_are_memory_of_the_one_after():
    cells = rows.CellBuffer(keeps=True)
    ids, inverse = rows.unique(np.array([7, 8, 7]), cells)

    rows.unique(np.array([5, 5]), cells)
    np.testing.assert_array_equal(ids, [7, 8])
    np.testing.assert_array_equal(inverse, [0, 1, 0])
    again, _ = rows.unique(np.array([9]), cells)

    assert np.shares_memory(ids, again)


@pytest.mark.parametrize(("ids", "height", "fit"), [
    ([], 3, True), ([0, 2, 1], 3, True), ([0, 3], 3, False), ([-1, 0], 3, False),
    ([2**62], 3, False), ([-(2**63)], 2**31, False),
])  # fmt: skip
def test_ids_become_rows_if_they_are_rows(ids, height, fit):
    out = np.full(len(ids), -7, np.int32)

    assert rows.as_rows(read_only(np.array(ids, np.int64)), height, out) is fit
    if fit:
        assert out.tolist() == ids


def test_more_distinct_ids_than_the_last_time_are_all_found():
    cells = rows.CellBuffer()
    rng = np.random.default_rng(2)
    for count, of in ((1000, 3), (1000, 900), (0, 1), (5, 5), (40_000, 10**9), (40_000, 20)):
        ids = rng.integers(0, of, count)
        found, inverse = rows.unique(ids, cells)
        expected, expected_inverse = twins.unique(ids)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(inverse, expected_inverse)
        assert cells.distinct == len(expected)


def test_several_lists_are_numbered_as_one():
    rng = np.random.default_rng(3)
    lists = [rng.integers(0, 50, count) for count in (20, 0, 300, 1)]

    ids, inverse = rows.unique_of(lists, rows.CellBuffer())

    expected, expected_inverse = twins.unique(np.concatenate(lists))
    np.testing.assert_array_equal(ids, expected)
    np.testing.assert_array_equal(inverse, expected_inverse)


def test_unique_results_survive_the_next_call():
    ids, inverse = rows.unique(np.array([7, 8, 7]))

    rows.unique(np.arange(1000))

    assert (ids.tolist(), inverse.tolist()) == ([7, 8], [0, 1, 0])


@pytest.mark.parametrize("width", [1, 3, 16, 33])
@pytest.mark.parametrize("count", [0, 1, 100])
def test_gather_equals_its_twin(count, width):
    index = read_only(RNG.integers(0, 20, count).astype(np.int32))
    out, expected = np.empty((count, width), np.float32), np.empty((count, width), np.float32)

    rows.gather(floats(20, width), index, out)

    twins.gather(floats(20, width), index, expected)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("width", [1, 3, 16, 33])
@pytest.mark.parametrize("count", [0, 1, 100])
def test_scatter_adds_equal_rows_in_order(count, width):
    index = read_only(RNG.integers(0, 20, count).astype(np.int32))
    out, expected = floats(20, width).copy(), floats(20, width).copy()

    rows.scatter_add_(out, index, floats(count, width))

    twins.scatter_add_(expected, index, floats(count, width))
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("width", [3, 8])
@pytest.mark.parametrize(("groups", "of_group"), [(0, 2), (1, 5), (4, 1), (4, 3)])
def test_rows_of_groups_that_lie_apart_are_added_in_order(groups, of_group, width):
    apart = of_group * width + 3
    index = read_only(RNG.integers(0, 6, groups * of_group).astype(np.int32))
    wide = floats(max(1, groups), apart)
    values = np.ascontiguousarray(wide[:groups, : of_group * width]).reshape(-1, width)
    out, expected = floats(6, width).copy(), floats(6, width).copy()

    rows.scatter_add_groups_(out, index, wide.reshape(-1), of_group, apart)

    twins.scatter_add_(expected, index, values)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("width", [5, 24])
@pytest.mark.parametrize("count", [0, 1, 20])
def test_scatter_puts_rows_where_their_index_says(count, width):
    index = read_only(RNG.permutation(20)[:count].astype(np.int32))
    out, expected = floats(20, width).copy(), floats(20, width).copy()

    rows.scatter(out, index, floats(count, width))

    expected[index] = floats(count, width)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("name", ID_SETS)
def test_merge_sums_the_values_of_equal_ids(name):
    gradient = SelectedRows(ID_SETS[name], floats(len(ID_SETS[name]), 4), height=9)

    merged, expected = rows.merge(gradient), twins.merge(gradient)

    np.testing.assert_array_equal(merged.ids, expected.ids)
    np.testing.assert_array_equal(merged.values, expected.values)
    assert (merged.height, merged.unique) == (9, True)


def test_merge_of_unique_rows_is_the_same_object():
    gradient = SelectedRows(np.array([1, 2]), floats(2, 4), unique=True)

    assert rows.merge(gradient) is gradient


@pytest.mark.parametrize("bounds", [[0, 1024], [0, 512, 1024], [0, 0, 700, 700, 1024]])
@pytest.mark.parametrize("name", ID_SETS)
def test_partition_groups_ids_by_owner_and_keeps_their_order(name, bounds):
    order, counts = rows.partition_ids(ID_SETS[name], np.array(bounds), 1024)

    expected_order, expected_counts = twins.partition_ids(ID_SETS[name], np.array(bounds), 1024)
    np.testing.assert_array_equal(order, expected_order)
    np.testing.assert_array_equal(counts, expected_counts)


def test_partition_refuses_bounds_that_do_not_cover_the_shards():
    with pytest.raises(ValueError, match="do not cover 1024 virtual shards"):
        rows.partition_ids(ID_SETS["few"], np.array([0, 500]), 1024)
