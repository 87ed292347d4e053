"""float16 agrees with numpy's, bfloat16 with whole-number arithmetic, int8 with its definition."""

from __future__ import annotations

import numpy as np
import pytest

from psrt.kernels.precision import halves

F16_INF, BF16_INF = 0x7C00, 0x7F80
EVERY_HALF = np.arange(1 << 16, dtype=np.uint16)
TINY = np.finfo(np.float32).tiny


def some_of_all_floats():
    """Bit patterns all over the range of float32; each half, and numbers around and between."""
    spread = np.arange(0, 1 << 32, 40_009, dtype=np.uint64).astype(np.uint32)
    upper = EVERY_HALF.astype(np.uint32) << np.uint32(16)
    near = [upper + np.uint32(low) for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)]
    with np.errstate(invalid="ignore"):
        as_f16 = EVERY_HALF.view(np.float16).astype(np.float32).view(np.uint32)
    ties = [as_f16 + np.uint32(low) for low in (0, 0xFFF, 0x1000, 0x1001)]
    return np.concatenate([spread, *near, *ties]).view(np.float32)


def saturated(bits, x, infinity):
    """`bits`, with finite `x` that became infinite one step below."""
    became = np.isfinite(x) & ((bits & np.uint16(0x7FFF)) == infinity)
    return bits - became.astype(np.uint16)


def bf16_twin(x):
    """The nearer of the two neighbours, in 64-bit whole numbers; of equally near ones the even."""
    bits = x.view(np.uint32).astype(np.int64)
    lower, rest = bits >> 16, bits & 0xFFFF
    up = (rest > 0x8000) | ((rest == 0x8000) & (lower % 2 == 1))
    return saturated((lower + up).astype(np.uint16), x, BF16_INF)


def assert_same_but_for_nan(got, wanted, infinity, x):
    nan = np.isnan(x)
    np.testing.assert_array_equal(got[~nan], wanted[~nan])
    assert ((got[nan] & 0x7FFF) > infinity).all()


def test_float16_is_that_of_numpy_and_saturates():
    x = some_of_all_floats()
    out = np.empty(len(x), np.uint16)

    halves.to_f16(x, 1.0, out)

    with np.errstate(over="ignore", invalid="ignore"):
        wanted = saturated(x.astype(np.float16).view(np.uint16), x, F16_INF)
    assert_same_but_for_nan(out, wanted, F16_INF, x)


def test_bfloat16_rounds_to_the_nearest_even_and_saturates():
    x = some_of_all_floats()
    out = np.empty(len(x), np.uint16)

    halves.to_bf16(x, out)

    assert_same_but_for_nan(out, bf16_twin(x), BF16_INF, x)


def test_every_float16_comes_back_as_in_numpy():
    out = np.empty(len(EVERY_HALF), np.float32)

    halves.from_f16(EVERY_HALF, 1.0, out)

    with np.errstate(invalid="ignore"):
        wanted = EVERY_HALF.view(np.float16).astype(np.float32)
    np.testing.assert_array_equal(out, wanted)


def test_every_bfloat16_is_the_upper_half_of_a_float32():
    out = np.empty(len(EVERY_HALF), np.float32)

    halves.from_bf16(EVERY_HALF, out)

    np.testing.assert_array_equal(out.view(np.uint32) >> 16, EVERY_HALF)
    assert not (out.view(np.uint32) & 0xFFFF).any()


@pytest.mark.parametrize("size", [0, 1, 15, 17])
def test_what_both_can_say_survives_whatever_the_length(size):
    x = np.arange(size, dtype=np.float32) - 7
    x.flags.writeable = False
    bits, back = np.empty((2, size), np.uint16), np.empty((2, size), np.float32)

    halves.to_f16(x, 1024.0, bits[0])
    halves.from_f16(bits[0], 1 / 1024, back[0])
    halves.to_bf16(x, bits[1])
    halves.from_bf16(bits[1], back[1])

    np.testing.assert_array_equal(back, [x, x])


@pytest.mark.parametrize("size", [0, 1, 15, 1000])
def test_the_largest_magnitude_has_no_sign_and_is_nan_if_there_is_one(size):
    x = -np.arange(size, dtype=np.float32)

    assert halves.largest_magnitude(x) == max(size - 1, 0)
    if size:
        x[size // 2] = np.nan
        assert np.isnan(halves.largest_magnitude(x))


def test_a_finite_number_does_not_become_infinite_by_its_factor():
    x, bits, back = np.array([3e38, -3e38, np.inf], np.float32), np.empty(3, np.uint16), np.empty(3)

    halves.to_f16(x, 1024.0, bits)

    back[:] = bits.view(np.float16)
    np.testing.assert_array_equal(back, [65504, -65504, np.inf])


def test_exponents_are_counted_as_bits_say_them():
    x = np.array([0.0, -0.0, 1e-40, 1.0, -1.5, 2.0, np.inf, np.nan], np.float32)
    counts = np.zeros(256, np.int64)

    halves.count_exponents(x, counts)

    found = {int(exponent): int(counts[exponent]) for exponent in np.flatnonzero(counts)}
    assert found == {0: 3, 127: 2, 128: 1, 255: 2}


def test_what_was_lost_is_kept_if_it_is_finite():
    x = np.array([1.0, 2.5, np.inf, np.nan, 4.0, 3e38], np.float32)

    halves.keep_lost_(x, np.array([1.0, 2.0, np.inf, 1.0, np.nan, -3e38], np.float32))

    np.testing.assert_array_equal(x, [0.0, 0.5, 0.0, 0.0, 0.0, 0.0])


def int8_of(x):
    rows, width = x.shape
    q, scales, back = np.full(x.size, 99, np.int8), np.empty(rows, np.float32), np.empty_like(x)
    halves.to_int8(x.reshape(-1), width, q, scales)
    halves.from_int8(q, scales, width, back.reshape(-1))
    return q.reshape(x.shape), scales, back


@pytest.mark.parametrize("width", [1, 7, 16, 33])
def test_int8_takes_the_largest_of_a_row_as_127_and_is_half_a_step_off_at_most(width):
    x = np.random.default_rng(width).standard_normal((50, width)).astype(np.float32)
    x *= np.logspace(-30, 30, 50, dtype=np.float32)[:, None]

    q, scales, back = int8_of(x)

    largest = np.abs(x).max(axis=1)
    np.testing.assert_array_equal(scales, largest / np.float32(127))
    assert (np.abs(q).max(axis=1) == 127).all()
    assert (np.abs(x - back) <= 0.501 * scales[:, None]).all()


def test_a_row_of_zeros_or_of_next_to_nothing_becomes_zeros():
    x = np.array([[0, 0], [TINY, -TINY], [-0.0, 0]], np.float32)

    q, _, back = int8_of(x)

    assert not q.any()
    assert not back.any()


def test_the_smallest_and_the_largest_rows_that_have_a_scale_do_not_overflow():
    largest = np.finfo(np.float32).max
    x = np.array([[largest, -largest], [128 * TINY, -64 * TINY]], np.float32)

    q, _, back = int8_of(x)

    assert (np.abs(q[:, 0]) == 127).all()
    np.testing.assert_allclose(back, x, rtol=0.01)


def test_a_row_with_infinity_or_nan_becomes_nan_and_the_others_do_not():
    x = np.array([[1, np.inf], [np.nan, 1], [1, 2], [-np.inf, np.nan]], np.float32)

    back = int8_of(x)[2]

    np.testing.assert_array_equal(np.isnan(back).all(axis=1), [True, True, False, True])
    np.testing.assert_allclose(back[2], [1, 2], atol=0.01)


def test_the_last_row_may_be_shorter():
    x = np.array([1, 2, 3, 4, 50], np.float32)
    q, scales, back = np.empty(5, np.int8), np.empty(2, np.float32), np.empty(5, np.float32)

    halves.to_int8(x, 4, q, scales)
    halves.from_int8(q, scales, 4, back)

    np.testing.assert_array_equal(scales, np.float32([4, 50]) / np.float32(127))
    np.testing.assert_allclose(back, x, atol=0.02)
