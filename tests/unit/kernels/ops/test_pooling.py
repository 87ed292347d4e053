"""Pooling agrees with its twin, and its gradients with finite differences of the twin."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from psrt.kernels.ops import pooling
from psrt.kernels.ops.pooling import EMPTY
from tests.support import twins

LENGTHS = {
    "no examples": [[]],
    "an empty example": [[0]],
    "one each": [[1, 1, 1]],
    "any number": [[3, 0, 1, 7, 0]],
    "empty slots": [[0, 0], [0, 0]],
    "several slots": [[2, 0, 1], [1, 1, 1], [0, 0, 4]],
}
WIDTHS = [1, 3, 16]
POOLS = [*pooling.POOLS, "max"]


def case(name, width):
    """(rows (9, width), index, offsets), all read-only; rows stand in the index several times."""
    lengths = np.array(LENGTHS[name], np.int64)
    rng = np.random.default_rng(lengths.sum() + width)
    rows = rng.standard_normal((9, width)).astype(np.float32)
    index = rng.integers(0, 9, lengths.sum()).astype(np.int32)
    offsets = np.zeros((len(lengths), lengths.shape[1] + 1), np.int64)
    np.cumsum(lengths, axis=1, out=offsets[:, 1:])
    for array in (rows, index, offsets):
        array.flags.writeable = False
    return rows, index, offsets


def twin(rows, index, offsets, pool):
    """(b, slots, d): each slot by itself."""
    parts = np.split(index, np.cumsum(offsets[:, -1])[:-1])
    pairs = zip(parts, offsets, strict=True)
    return np.stack([twins.pool_rows(rows, each, own, pool) for each, own in pairs], axis=1)


def pooled(rows, index, offsets, pool):
    """(out, argmax); argmax is None unless pool is "max"."""
    out = np.full((len(offsets) * (offsets.shape[1] - 1), rows.shape[1]), np.nan, np.float32)
    if pool != "max":
        pooling.pool_rows(rows, index, offsets, pooling.POOLS[pool], out)
        return out, None
    argmax = np.empty(out.shape, np.int32)
    pooling.pool_max(rows, index, offsets, out, argmax)
    return out, argmax


def gradient_of(function, x, grad_out):
    """d Σ(function(x) · grad_out) / d x by central differences in float64."""
    x, step = x.astype(np.float64), 1e-5
    gradient = np.zeros_like(x)
    for cell in np.ndindex(*x.shape):
        moved = [x.copy(), x.copy()]
        moved[0][cell] += step
        moved[1][cell] -= step
        up, down = (function(each) for each in moved)
        gradient[cell] = ((up - down).reshape(grad_out.shape) * grad_out).sum() / (2 * step)
    return gradient


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", LENGTHS)
def test_pooled_rows_equal_their_twin(name, width, pool):
    rows, index, offsets = case(name, width)

    out, _ = pooled(rows, index, offsets, pool)

    np.testing.assert_array_equal(out, twin(rows, index, offsets, pool).reshape(-1, width))


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("name", LENGTHS)
def test_gradient_equals_finite_differences(name, pool):
    rows, index, offsets = case(name, 3)
    out, argmax = pooled(rows, index, offsets, pool)
    grad_out = np.random.default_rng(0).standard_normal(out.shape).astype(np.float32)
    grad_rows = np.zeros_like(rows)

    if pool == "max":
        pooling.pool_max_grad_(grad_rows, argmax, grad_out)
    else:
        stride = len(offsets) * rows.shape[1]
        flat = grad_out.reshape(-1)
        pooling.pool_rows_grad_(grad_rows, index, offsets, pooling.POOLS[pool], flat, stride)

    expected = gradient_of(lambda moved: twin(moved, index, offsets, pool), rows, grad_out)
    np.testing.assert_allclose(grad_rows, expected, rtol=1e-4, atol=1e-5)


def test_gradient_is_added_to_what_is_there():
    rows, index, offsets = case("one each", 4)
    grad_rows = np.ones_like(rows)

    pooling.pool_rows_grad_(grad_rows, index, offsets, pooling.SUM, np.zeros(12, np.float32), 4)

    np.testing.assert_array_equal(grad_rows, 1)


def test_maximum_of_equal_rows_is_the_first_and_of_none_is_empty():
    rows = np.array([[1.0], [1.0]], np.float32)
    out, argmax = np.empty((2, 1), np.float32), np.empty((2, 1), np.int32)

    pooling.pool_max(rows, np.array([1, 0], np.int32), np.array([[0, 2, 2]]), out, argmax)

    assert (out.tolist(), argmax.tolist()) == ([[1.0], [0.0]], [[1], [EMPTY]])


@pytest.mark.parametrize("name", ["no examples", "an empty example", "one each", "any number"])
@pytest.mark.parametrize("width", WIDTHS)
def test_weighted_rows_and_both_gradients(name, width):
    rows, index, ((*offsets,),) = case(name, width)
    offsets = np.array(offsets)
    rng = np.random.default_rng(1)
    weights = rng.standard_normal(len(index)).astype(np.float32)
    grad_out = rng.standard_normal((len(offsets) - 1, width)).astype(np.float32)
    out, grad_rows, grad_weights = np.full_like(grad_out, 5), np.zeros_like(rows), weights.copy()

    def expected(rows, weights):
        terms = weights[:, None] * rows[index]
        sums = [terms[a:b].sum(axis=0) for a, b in itertools.pairwise(offsets)]
        return np.array(sums).reshape(grad_out.shape)

    pooling.pool_weighted(rows, index, weights, offsets, out)
    pooling.pool_weighted_grad_(grad_rows, index, weights, offsets, grad_out)
    pooling.pool_weights_grad(rows, index, offsets, grad_out, grad_weights)

    by_rows = gradient_of(lambda moved: expected(moved, weights), rows, grad_out)
    by_weights = gradient_of(lambda moved: expected(rows, moved), weights, grad_out)
    np.testing.assert_allclose(out, expected(rows, weights), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(grad_rows, by_rows, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(grad_weights, by_weights, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_nan_is_the_maximum_wherever_it_stands(place):
    rows = np.array([[3.0], [1.0], [2.0]], np.float32)
    rows[place] = np.nan
    out, argmax = np.empty((1, 1), np.float32), np.empty((1, 1), np.int32)

    pooling.pool_max(rows, np.arange(3, dtype=np.int32), np.array([[0, 3]]), out, argmax)

    assert np.isnan(out[0, 0])
    assert argmax[0, 0] == place
