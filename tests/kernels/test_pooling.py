"""Pooling agrees with its twin, and its gradients with finite differences of the twin."""

from __future__ import annotations

import numpy as np
import pytest

from psrt.kernels import oracle, pooling
from psrt.kernels.pooling import EMPTY

LENGTHS = [[], [0], [1], [1, 1, 1], [3, 0, 1, 7, 0], [0, 0]]
WIDTHS = [1, 3, 16]
POOLS = ["sum", "average", "max"]


def case(lengths, width):
    """(rows (9, width), index, offsets), all read-only; rows stand in the index several times."""
    rng = np.random.default_rng(sum(lengths) + width)
    rows = rng.standard_normal((9, width)).astype(np.float32)
    index = rng.integers(0, 9, sum(lengths)).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
    for array in (rows, index, offsets):
        array.flags.writeable = False
    return rows, index, offsets


def pool_into(out, rows, index, offsets, pool, column=0):
    """Returns argmax for "max"."""
    if pool != "max":
        return pooling.pool_rows(rows, index, offsets, out, pool, column)
    argmax = np.empty((len(out), rows.shape[1]), np.int32)
    pooling.pool_rows_max(rows, index, offsets, out, argmax, column)
    return argmax


def gradient_of(rows, index, offsets, grad_out, pool):
    """d Σ(pooled · grad_out) / d rows by central differences of the twin in float64."""
    rows, step = rows.astype(np.float64), 1e-5
    gradient = np.zeros_like(rows)
    for cell in np.ndindex(*rows.shape):
        moved = [rows.copy(), rows.copy()]
        moved[0][cell] += step
        moved[1][cell] -= step
        up, down = (oracle.pool_rows(each, index, offsets, pool) for each in moved)
        gradient[cell] = ((up - down) * grad_out).sum() / (2 * step)
    return gradient


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("lengths", LENGTHS)
def test_pooled_rows_equal_their_twin(lengths, width, pool):
    rows, index, offsets = case(lengths, width)
    out = np.full((len(lengths), width), np.nan, np.float32)

    pool_into(out, rows, index, offsets, pool)

    np.testing.assert_array_equal(out, oracle.pool_rows(rows, index, offsets, pool))


@pytest.mark.parametrize("as_slice", [True, False])
@pytest.mark.parametrize("pool", POOLS)
def test_slot_lands_in_its_columns_of_a_wider_array(pool, as_slice):
    rows, index, offsets = case([3, 0, 1], 4)
    wide = np.full((3, 12), 7, np.float32)

    if as_slice:
        pool_into(wide[:, 4:8], rows, index, offsets, pool)
    else:
        pool_into(wide, rows, index, offsets, pool, column=4)

    np.testing.assert_array_equal(wide[:, 4:8], oracle.pool_rows(rows, index, offsets, pool))
    np.testing.assert_array_equal(np.delete(wide, np.s_[4:8], axis=1), 7)


@pytest.mark.parametrize("as_slice", [True, False])
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("lengths", LENGTHS)
def test_gradient_equals_finite_differences(lengths, pool, as_slice):
    rows, index, offsets = case(lengths, 3)
    wide = np.random.default_rng(0).standard_normal((len(lengths), 7)).astype(np.float32)
    wide.flags.writeable = False
    grad_rows = np.zeros_like(rows)
    argmax = pool_into(np.empty((len(lengths), 3), np.float32), rows, index, offsets, pool)

    given = (wide[:, 2:5], 0) if as_slice else (wide, 2)
    if pool == "max":
        pooling.pool_rows_max_grad_(grad_rows, argmax, *given)
    else:
        pooling.pool_rows_grad_(grad_rows, index, offsets, given[0], pool, given[1])

    expected = gradient_of(rows, index, offsets, wide[:, 2:5], pool)
    np.testing.assert_allclose(grad_rows, expected, rtol=1e-4, atol=1e-5)


def test_gradient_is_added_to_what_is_there():
    rows, index, offsets = case([2, 1], 4)
    grad_rows = np.ones_like(rows)

    pooling.pool_rows_grad_(grad_rows, index, offsets, np.zeros((2, 4), np.float32))

    np.testing.assert_array_equal(grad_rows, 1)


def test_maximum_of_equal_rows_is_the_first_and_of_none_is_empty():
    rows = np.array([[1.0], [1.0]], np.float32)
    out, argmax = np.empty((2, 1), np.float32), np.empty((2, 1), np.int32)

    pooling.pool_rows_max(rows, np.array([1, 0], np.int32), np.array([0, 2, 2]), out, argmax)

    assert (out.tolist(), argmax.tolist()) == ([[1.0], [0.0]], [[1], [EMPTY]])


@pytest.mark.parametrize("pool", ["sum", "average"])
def test_segments_are_pooled_and_differentiated_in_place(pool):
    values, offsets = case([0], 4)[0], np.array([0, 2, 2, 9])
    out, grad_values = np.empty((3, 4), np.float32), np.full((9, 4), 5, np.float32)
    identity = np.arange(9)

    pooling.segment_pool(values, offsets, out, pool)
    pooling.segment_pool_grad(out, offsets, grad_values, pool)

    np.testing.assert_array_equal(out, oracle.pool_rows(values, identity, offsets, pool))
    expected = gradient_of(values, identity, offsets, out, pool)
    np.testing.assert_allclose(grad_values, expected, rtol=1e-4, atol=1e-5)


def test_segment_maximum_hands_its_gradient_to_where_it_stood():
    values = np.array([[1, 9], [5, 2], [3, 3]], np.float32)
    out, argmax = np.empty((2, 2), np.float32), np.empty((2, 2), np.int32)
    grad_values = np.full((3, 2), 5, np.float32)

    pooling.segment_max(values, np.array([0, 2, 3]), out, argmax)
    pooling.segment_max_grad(np.array([[1, 2], [3, 4]], np.float32), argmax, grad_values)

    assert out.tolist() == [[5, 9], [3, 3]]
    assert grad_values.tolist() == [[0, 2], [1, 0], [3, 4]]


@pytest.mark.parametrize("shape", [(3, 4), (1, 4), (2, 3)])
def test_array_that_does_not_fit_the_segments_is_refused(shape):
    rows, index, offsets = case([2, 1], 4)

    with pytest.raises(ValueError, match="2 segments of width 4 at column 0 do not fit"):
        pooling.pool_rows(rows, index, offsets, np.zeros(shape, np.float32))


def test_unknown_pool_is_refused():
    rows, index, offsets = case([1], 4)

    with pytest.raises(ValueError, match="'median' is neither"):
        pooling.pool_rows(rows, index, offsets, np.zeros((1, 4), np.float32), "median")
