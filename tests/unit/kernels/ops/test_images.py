"""Pooling kernels against loops over single windows, written from the definitions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from psrt.core.types import F32, I64
from psrt.kernels.ops import images


class Case(NamedTuple):
    """Sizes are (rows, columns)."""

    image: tuple[int, int]
    size: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)

    @property
    def out(self) -> tuple[int, int]:
        parts = zip(self.image, self.size, self.stride, self.padding, strict=True)
        height, width = ((n + 2 * p - k) // s + 1 for n, k, s, p in parts)
        return height, width


POOLS = {
    "plain": Case((4, 6), (2, 2), stride=(2, 2)),
    "overlapping": Case((5, 5), (3, 2)),
    "padded": Case((4, 5), (3, 3), stride=(2, 2), padding=(1, 2)),
    "gaps between windows": Case((7, 7), (1, 2), stride=(3, 3)),
}


def numbers(*shape: int) -> F32:
    return np.random.default_rng(5).normal(size=shape).astype(np.float32)


def window(*pairs: tuple[int, int]) -> I64:
    return np.array(pairs, np.int64).reshape(-1)


def inside(case: Case, i: int, j: int) -> tuple[slice, slice]:
    """The part of window (i, j) that is inside of the image."""
    starts = (n * s - p for n, s, p in zip((i, j), case.stride, case.padding, strict=True))
    rows, columns = (slice(max(n, 0), n + k) for n, k in zip(starts, case.size, strict=True))
    return rows, columns


@pytest.mark.parametrize("name", POOLS)
def test_maxima_and_their_gradients(name: str) -> None:
    case = POOLS[name]
    x, grad = numbers(3, *case.image), numbers(3, *case.out)
    out, x_grad = np.empty_like(grad), np.full((3, x[0].size), np.nan, np.float32)
    argmax = np.empty(grad.shape, np.int32)
    expected, expected_grad = np.empty_like(out), np.zeros_like(x)
    for plane, i, j in np.ndindex(grad.shape):
        part = (plane, *inside(case, i, j))
        expected[plane, i, j] = x[part].max()
        expected_grad[part] += grad[plane, i, j] * (x[part] == x[part].max())

    images.max_pool(x, window(case.size, case.stride, case.padding), out, argmax)
    images.max_pool_grad(grad.reshape(3, -1), argmax.reshape(3, -1), x_grad)

    np.testing.assert_array_equal(out, expected)
    np.testing.assert_allclose(x_grad.reshape(x.shape), expected_grad, rtol=1e-6)


def test_first_of_equal_maxima_counts_and_nan_is_the_largest() -> None:
    x = np.array([[[2, 2, -np.inf, -np.inf], [2, 1, 3, np.nan]]], np.float32)
    out, argmax = np.empty((1, 1, 2), np.float32), np.empty((1, 1, 2), np.int32)

    images.max_pool(x, window((2, 2), (2, 2), (0, 0)), out, argmax)

    np.testing.assert_array_equal(out, [[[2, np.nan]]])
    assert argmax.tolist() == [[[0, 7]]]


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("name", POOLS)
def test_averages_and_their_gradients(name: str, exclusive: bool) -> None:
    case = POOLS[name]
    x, grad = numbers(3, *case.image), numbers(3, *case.out)
    out, x_grad = np.empty_like(grad), np.full_like(x, np.nan)
    expected, expected_grad = np.empty_like(out), np.zeros_like(x)
    for plane, i, j in np.ndindex(grad.shape):
        part = (plane, *inside(case, i, j))
        count = x[part].size if exclusive else np.prod(case.size)
        expected[plane, i, j] = x[part].sum() / count
        expected_grad[part] += grad[plane, i, j] / count
    pool = window(case.size, case.stride, case.padding)

    images.average_pool(x, pool, exclusive, out)
    images.average_pool_grad(grad, pool, exclusive, x_grad)

    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(x_grad, expected_grad, rtol=1e-5, atol=1e-6)
