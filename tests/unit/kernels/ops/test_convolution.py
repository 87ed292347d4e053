"""Kernels of convolution against loops over single elements, written from the definitions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest

from psrt.core.types import F32, I64
from psrt.kernels.ops import convolution


class Case(NamedTuple):
    """Sizes are (rows, columns); `far` is the dilation of a filter."""

    image: tuple[int, int]
    size: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    far: tuple[int, int] = (1, 1)

    @property
    def out(self) -> tuple[int, int]:
        parts = zip(self.image, self.size, self.stride, self.padding, self.far, strict=True)
        height, width = ((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in parts)
        return height, width


CONVOLUTIONS = {
    "plain": Case((5, 6), (3, 2)),
    "one pixel": Case((3, 3), (1, 1)),
    "the whole image": Case((3, 4), (3, 4)),
    "stride": Case((7, 8), (3, 3), stride=(2, 3)),
    "padding": Case((4, 3), (3, 3), padding=(1, 2)),
    "padding wider than the filter": Case((2, 2), (2, 2), padding=(3, 3)),
    "filter wider than the image": Case((2, 2), (7, 7), padding=(3, 3)),
    "dilation": Case((7, 7), (3, 2), far=(2, 3)),
    "all of it": Case((6, 9), (3, 2), stride=(2, 3), padding=(2, 1), far=(2, 3)),
}


def numbers(*shape: int) -> F32:
    return np.random.default_rng(5).normal(size=shape).astype(np.float32)


def window(*pairs: tuple[int, int]) -> I64:
    return np.array(pairs, np.int64).reshape(-1)


def windows_of(case: Case) -> I64:
    return window(case.stride, case.padding, case.far)


def sights(case: Case) -> Iterator[tuple[int, int, int, int, int, int]]:
    """(a, b, i, j, y, z): weight (a, b) of the filter sees pixel (y, z) at output (i, j)."""
    (height, width), (down, right) = case.image, case.padding
    for a, b, i, j in itertools.product(*map(range, (*case.size, *case.out))):
        y = i * case.stride[0] + a * case.far[0] - down
        z = j * case.stride[1] + b * case.far[1] - right
        if 0 <= y < height and 0 <= z < width:
            yield a, b, i, j, y, z


def by_lane(images: F32, lanes: int) -> F32:
    """(channels, …, n) → (channels, …, n / lanes, …, lanes) as kernels read it: the last dimension
    of pixels has those of `lanes` images side by side."""
    channels, *size, count = images.shape
    apart = images.reshape(channels, *size, count // lanes, lanes)
    return np.ascontiguousarray(np.moveaxis(apart, -2, -4)).reshape(
        channels, *size[:-2], count // lanes, size[-2], size[-1] * lanes
    )


LANES = pytest.mark.parametrize("lanes", [1, 2, 4])
TOP = pytest.mark.parametrize("top", [0, 1])
CONVOLUTION = pytest.mark.parametrize("name", CONVOLUTIONS)


@LANES
@TOP
@CONVOLUTION
def test_columns_hold_what_each_weight_sees(name: str, top: int, lanes: int) -> None:
    case = CONVOLUTIONS[name]
    x = numbers(3, *case.image, 4)
    expected = np.zeros((2, *case.size, *case.out, 4), np.float32)
    for a, b, i, j, y, z in sights(case):
        expected[:, a, b, i, j] = x[1:, y, z]
    expected = by_lane(expected[:, :, :, top:], lanes)
    columns = np.full_like(expected, np.nan)
    seen = np.ascontiguousarray(by_lane(x, lanes).swapaxes(0, 1))

    convolution.im2col(seen, windows_of(case), lanes, 1, top, columns)

    np.testing.assert_array_equal(columns, expected)


@CONVOLUTION
def test_interpreted_loops_equal_machine_code(name: str) -> None:
    case = CONVOLUTIONS[name]
    x = numbers(2, 1, case.image[0], 2 * case.image[1])
    shape = (1, *case.size, 2, case.out[0], 2 * case.out[1])
    columns, found = np.empty(shape, np.float32), np.empty(shape)
    grad, found_grad = x.copy(), x.astype(np.float64)

    convolution.im2col(x, windows_of(case), 2, 0, 0, columns)
    convolution.im2col.python(x.astype(np.float64), windows_of(case), 2, 0, 0, found)
    convolution.col2im_(columns, windows_of(case), 2, 0, 0, grad)
    convolution.col2im_.python(found, windows_of(case), 2, 0, 0, found_grad)

    np.testing.assert_array_equal(found, columns)
    np.testing.assert_allclose(found_grad, grad, rtol=1e-4, atol=1e-5)


@LANES
@TOP
@CONVOLUTION
def test_columns_are_added_to_what_they_were_made_of(name: str, top: int, lanes: int) -> None:
    case = CONVOLUTIONS[name]
    columns = numbers(2, *case.size, *case.out, 4)[:, :, :, top:]
    x = numbers(3, *case.image, 4)
    found = np.ascontiguousarray(by_lane(x, lanes).swapaxes(0, 1))
    expected = x.copy()
    for a, b, i, j, y, z in sights(case):
        if i >= top:
            expected[1:, y, z] += columns[:, a, b, i - top, j]

    convolution.col2im_(by_lane(columns, lanes), windows_of(case), lanes, 1, top, found)

    np.testing.assert_allclose(found.swapaxes(0, 1), by_lane(expected, lanes), rtol=1e-4, atol=1e-5)


@LANES
@pytest.mark.parametrize("relu", [False, True])
def test_products_become_maps_and_their_gradients_products(relu: bool, lanes: int) -> None:
    product, bias = numbers(2, 4 // lanes, 3, lanes), numbers(5)
    maps, back = np.zeros((4, 5, 8), np.float32), np.empty_like(product)
    by_image = product.transpose(1, 3, 0, 2).reshape(4, 2, 3)
    expected = by_image + bias[2:4, None]
    grad = numbers(4, 5, 8)

    convolution.scatter_maps(product, bias, relu, 2, 5, maps)
    convolution.gather_maps(grad, maps, relu, 2, 5, back)

    part = (slice(None), slice(2, 4), slice(5, None))
    np.testing.assert_array_equal(maps[part], np.maximum(expected, 0) if relu else expected)
    maps[part] = 0
    assert not maps.any()
    passed = grad[part] * ((expected > 0) | (not relu))
    found = back.transpose(1, 3, 0, 2).reshape(4, 2, 3)
    np.testing.assert_array_equal(found, passed)


@pytest.mark.parametrize("relu", [False, True])
def test_bias_is_added_in_place(relu: bool) -> None:
    maps, bias = numbers(3, 2, 5), numbers(2)
    expected = maps + bias[:, None]

    convolution.bias_maps_(maps, bias, relu)

    np.testing.assert_array_equal(maps, np.maximum(expected, 0) if relu else expected)
