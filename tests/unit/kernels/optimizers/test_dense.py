"""Element-wise kernels agree with numpy to the bit, however a block is sliced."""

from __future__ import annotations

import numpy as np
import pytest

from psrt.kernels.optimizers import elementwise
from tests.support import twins

SIZES = [0, 1, 15, 16, 17, 1000, 4099]


def numbers(size: int, seed: int = 0):
    values = np.random.default_rng(seed).standard_normal(size).astype(np.float32)
    values.flags.writeable = False
    return values


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["add_", "scale_", "axpy_"])
def test_in_place_kernel_equals_its_twin(name, size):
    arguments = {"add_": (numbers(size, 1),), "scale_": (0.3,), "axpy_": (0.3, numbers(size, 1))}
    out, expected = numbers(size).copy(), numbers(size).copy()

    getattr(elementwise, name)(out, *arguments[name])

    getattr(twins, name)(expected, *arguments[name])
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("size", SIZES)
def test_copy_copies_all_elements(size):
    out = np.zeros(size, np.float32)

    elementwise.copy(numbers(size), out)

    np.testing.assert_array_equal(out, numbers(size))


@pytest.mark.parametrize("size", SIZES)
def test_sum_squares_is_exact_to_float64(size):
    assert elementwise.sum_squares(numbers(size)) == pytest.approx(
        twins.sum_squares(numbers(size)), rel=1e-14
    )


@pytest.mark.parametrize("cut", [1, 7, 16, 33])
def test_result_does_not_depend_on_how_the_block_is_sliced(cut):
    whole, sliced = numbers(100).copy(), numbers(100).copy()
    x = numbers(100, 1)

    elementwise.axpy_(whole, 0.7, x)
    elementwise.axpy_(sliced[:cut], 0.7, x[:cut])
    elementwise.axpy_(sliced[cut:], 0.7, x[cut:])

    np.testing.assert_array_equal(whole, sliced)
