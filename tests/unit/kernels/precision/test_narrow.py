"""Narrower tensors in place of float32: dtypes, scales, factors, and errors of the way back."""

from __future__ import annotations

import numpy as np
import pytest

from psrt.kernels.precision.narrow import BLOCK_ROW, narrow, precision_of, scales_of, widen, widened

ROWS = np.random.default_rng(1).standard_normal((7, 5)).astype(np.float32)
BLOCK = np.random.default_rng(2).standard_normal(2 * BLOCK_ROW + 3).astype(np.float32)
NARROW = ["float16", "bfloat16", "int8"]
DTYPES = {"float16": np.float16, "bfloat16": np.uint16, "int8": np.int8}
HALF_STEP = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "int8": 0.5 / 127}


def largest(values):
    """Of the numbers that share a scale, for each of them."""
    if values.ndim == 2:
        return np.abs(values).max(axis=1, keepdims=True)
    parts = np.split(values, range(BLOCK_ROW, len(values), BLOCK_ROW))
    return np.concatenate([np.full(len(part), np.abs(part).max()) for part in parts])


def test_float32_is_the_array_itself():
    made = narrow(ROWS, "float32", small=True)

    assert made.tensors[0] is ROWS
    assert widened(made.tensors) is ROWS


@pytest.mark.parametrize("precision", NARROW)
@pytest.mark.parametrize("values", [ROWS, BLOCK], ids=["rows", "block"])
def test_the_way_back_is_half_a_step_off_at_most(precision, values):
    made = narrow(values, precision)
    back = widened(made.tensors, made.factor)

    step = largest(values) if precision == "int8" else np.abs(values)
    assert made.tensors[0].dtype == DTYPES[precision]
    assert made.tensors[0].shape == back.shape == values.shape
    assert (np.abs(back - values) <= 1.01 * HALF_STEP[precision] * step).all()


@pytest.mark.parametrize("precision", NARROW)
@pytest.mark.parametrize("shape", [(0,), (0, 5), (1,), (BLOCK_ROW,), (3, 1)])
def test_every_shape_has_its_tensors(precision, shape):
    values, out = np.ones(shape, np.float32), np.zeros(shape, np.float32)

    made = narrow(values, precision)
    widen(made.tensors, out, made.factor)

    np.testing.assert_allclose(out, values, rtol=1e-6)
    if precision == "int8":
        assert made.tensors[1].shape == (scales_of(shape),)


def test_a_scale_belongs_to_a_row_or_to_256_elements_of_a_block():
    assert scales_of((7, 5)) == 7
    assert [scales_of((n,)) for n in (0, 1, 256, 257)] == [0, 1, 1, 2]


@pytest.mark.parametrize("exponent", [-140, -60, -20, 0, 14, 60, 120])
def test_small_numbers_use_the_range_of_float16_by_a_power_of_two(exponent):
    values = np.ldexp(ROWS, exponent).astype(np.float32)

    made = narrow(values, "float16", small=True)
    back = widened(made.tensors, made.factor)

    sent = np.abs(made.tensors[0].astype(np.float32)).max()
    assert np.frexp(np.float32(made.factor))[0] == 0.5
    assert sent < 2.0**15
    if exponent > -100:
        assert sent >= 2.0**14
        np.testing.assert_allclose(back, values, rtol=2.0**-11)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("precision", NARROW)
def test_numbers_that_are_not_finite_do_not_become_finite(precision, bad):
    values = np.array([[1.0, bad]], np.float32)

    made = narrow(values, precision, small=True)
    back = widened(made.tensors, made.factor)

    assert not np.isfinite(back[0, 1])


def test_the_precision_is_told_by_the_dtype():
    found = [precision_of(np.dtype(dtype)) for dtype in ("f4", "f2", "u2", "i1", "f8", "i8")]

    assert found == ["float32", "float16", "bfloat16", "int8", None, None]


def rows_with(bad, scale):
    rows = (scale * np.random.default_rng(3).standard_normal((298, 16))).astype(np.float32)
    rows[7] = bad
    return rows, np.delete(np.arange(298), 7)


@pytest.mark.parametrize("scale", [1e-7, 1e-3, 1.0, 1e3])
@pytest.mark.parametrize("bad", [3e38, -1e12, np.inf, np.nan])
def test_a_row_that_has_diverged_takes_no_other_row_of_its_part_with_it(bad, scale):
    rows, others = rows_with(bad, scale)

    made = narrow(rows, "float16", small=True)
    back = widened(made.tensors, made.factor)

    median = float(np.median(np.abs(rows[others])))
    np.testing.assert_allclose(back[others], rows[others], rtol=2.0**-11, atol=2.0**-10 * median)
    assert (np.isnan(back[7]) if np.isnan(bad) else np.sign(back[7]) == np.sign(bad)).all()
    assert (np.isfinite(back[7]) == np.isfinite(bad)).all()


@pytest.mark.parametrize("largest", [1.0, 32_767.0, 1e7])
def test_the_largest_row_is_whole_where_no_other_is_lost_or_it_is_below_32768(largest):
    tiny = 1e-12 if largest < 2**15 else largest * 2.0**-27
    rows = np.full((100, 4), tiny, np.float32)
    rows[3] = largest

    made = narrow(rows, "float16", small=True)

    np.testing.assert_allclose(widened(made.tensors, made.factor)[3], largest, rtol=2.0**-11)


def test_a_row_that_is_clipped_is_still_large():
    rows, _ = rows_with(1e6, 1e-20)

    made = narrow(rows, "float16", small=True)

    assert (widened(made.tensors, made.factor)[7] >= 1.0).all()


def test_a_block_is_not_clipped_since_what_others_lose_is_kept():
    block = BLOCK.copy()
    block[7] = 3e38

    made = narrow(block, "float16", small=True)

    np.testing.assert_allclose(widened(made.tensors, made.factor)[7], 3e38, rtol=2.0**-11)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_small_numbers_of_a_block_are_seen_beside_one_that_is_not_finite(bad):
    block = 1e-9 * BLOCK
    block[7] = bad

    made = narrow(block, "float16", small=True)

    back = np.delete(widened(made.tensors, made.factor), 7)
    np.testing.assert_allclose(back, np.delete(block, 7), rtol=2.0**-11, atol=1e-15)
