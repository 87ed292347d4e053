"""Decay and delay compensation agree with numpy to the bit, on blocks and on rows."""

from __future__ import annotations

import numpy as np
import pytest

from psrt.core.specs import L1Decay, L2Decay
from psrt.kernels.optimizers.decay import compensate, decay_of

f4 = np.float32
SIZES = [0, 1, 15, 16, 17, 1000]
COEFF = 0.3

every_size = pytest.mark.parametrize("size", SIZES)
every_regularizer = pytest.mark.parametrize("regularizer", [L1Decay(COEFF), L2Decay(COEFF)])


def numbers(*shape, seed=0):
    """Read-only, as what comes from the wire; some are 0."""
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    values.reshape(-1)[::7] = 0.0
    values.flags.writeable = False
    return values


def twin(regularizer, g, w):
    return g + f4(COEFF) * (np.sign(w) if isinstance(regularizer, L1Decay) else w)


@every_size
@every_regularizer
def test_a_block_decays_into_another_array(regularizer, size):
    g, w, out = numbers(size), numbers(size, seed=1), np.empty(size, np.float32)

    made = decay_of(regularizer).of_block(g, w, out)

    assert made is out
    np.testing.assert_array_equal(out, twin(regularizer, g, w))


@every_size
@every_regularizer
def test_a_block_decays_in_place(regularizer, size):
    g, w = numbers(size).copy(), numbers(size, seed=1)
    expected = twin(regularizer, g, w)

    made = decay_of(regularizer).of_block(g, w, g)

    assert made is g
    np.testing.assert_array_equal(g, expected)


@every_regularizer
@pytest.mark.parametrize("width", [1, 3, 8, 16, 17, 100])
def test_rows_decay_by_the_weights_of_their_slots(regularizer, width):
    grads, slab = numbers(60, width), numbers(50, 2 + 3 * width, seed=1)
    slots = np.random.default_rng(2).permutation(50)[:40].astype(np.int32)
    order = np.random.default_rng(3).permutation(60)[:40].astype(np.int32)
    out = np.full((60, width), 99.0, np.float32)

    decay = decay_of(regularizer)
    decay.rows(grads, slab, 2, slots, order, decay.coeff, out)

    others = np.setdiff1d(np.arange(60), order)
    np.testing.assert_array_equal(
        out[order], twin(regularizer, grads[order], slab[slots, 2 : 2 + width])
    )
    np.testing.assert_array_equal(out[others], 99.0)


@pytest.mark.parametrize("none", [None, L1Decay(0.0), L2Decay()])
def test_a_coefficient_of_zero_is_no_decay(none):
    assert decay_of(none) is None


@every_size
def test_compensation_equals_its_twin(size):
    g, w, pulled = numbers(size), numbers(size, seed=1), numbers(size, seed=2)
    out = np.empty(size, np.float32)

    compensate(g, w, pulled, 0.04, out)

    np.testing.assert_array_equal(out, g + f4(0.04) * g * g * (w - pulled))


def test_compensation_is_the_published_formula():
    g, w, pulled = numbers(500), numbers(500, seed=1), numbers(500, seed=2)
    out = np.empty(500, np.float32)

    compensate(g, w, pulled, 2.0, out)

    exact = [a + 2.0 * a * a * (b - c) for a, b, c in zip(*map(f8, (g, w, pulled)), strict=True)]
    np.testing.assert_allclose(out, exact, rtol=1e-5, atol=1e-6)


def f8(values):
    return values.astype(np.float64).tolist()


def test_a_gradient_computed_on_the_weights_of_now_needs_no_compensation():
    g, w, out = numbers(100), numbers(100, seed=1), np.empty(100, np.float32)

    compensate(g, w, w, 0.5, out)

    np.testing.assert_array_equal(out, g)
