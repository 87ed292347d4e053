"""Fused steps agree with numpy, gradients with finite differences, AUC with counting pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from psrt.kernels.ops import nn
from tests.support import twins

SIZES = [0, 1, 7, 16, 1000]


def floats(*shape, seed=0):
    values = (3 * np.random.default_rng(seed).standard_normal(shape)).astype(np.float32)
    values.flags.writeable = False
    return values


def labels_of(size):
    return (np.random.default_rng(9).random(size) < 0.3).astype(np.float32)


def slope(function, x, step=1e-4):
    x = x.astype(np.float64)
    return (function(x + step) - function(x - step)) / (2 * step)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5, 17), (64, 400)])
def test_bias_and_relu_equal_their_twin(shape):
    plain, rectified, expected = (floats(*shape).copy() for _ in range(3))
    bias = floats(shape[1], seed=1)

    nn.bias_(plain, bias)
    nn.bias_relu_(rectified, bias)

    twins.bias_relu_(expected, bias)
    np.testing.assert_array_equal(plain, floats(*shape) + bias)
    np.testing.assert_array_equal(rectified, expected)


@pytest.mark.parametrize("size", SIZES)
def test_relu_passes_gradients_where_it_passed_values(size):
    out, grad_out, grad_x = np.maximum(floats(size), 0), floats(size, seed=1), np.empty(size, "f4")

    nn.relu_grad(out, grad_out, grad_x)

    np.testing.assert_array_equal(grad_x, np.where(out > 0, grad_out, 0))


@pytest.mark.parametrize("size", SIZES)
def test_sigmoid_and_its_gradient(size):
    x, out, grad_x = floats(size), np.empty(size, "f4"), np.empty(size, "f4")

    nn.sigmoid(x, out)
    nn.sigmoid_grad(out, np.full(size, 2, "f4"), grad_x)

    np.testing.assert_allclose(out, twins.sigmoid(x), rtol=1e-6)
    np.testing.assert_allclose(grad_x, 2 * slope(twins.sigmoid, x), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("size", SIZES)
def test_cross_entropy_and_its_gradient(size):
    x, labels, loss, grad_x = (
        floats(size),
        labels_of(size),
        np.empty(size, "f4"),
        np.empty(size, "f4"),
    )

    nn.sigmoid_cross_entropy(x, labels, loss)
    nn.sigmoid_cross_entropy_grad(x, labels, np.full(size, 2, "f4"), grad_x)

    expected = 2 * slope(lambda at: twins.sigmoid_cross_entropy(at, labels), x)
    np.testing.assert_allclose(loss, twins.sigmoid_cross_entropy(x, labels), rtol=1e-5)
    np.testing.assert_allclose(grad_x, expected, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("logit", [-1e30, -200.0, 0.0, 200.0, 1e30])
def test_huge_logits_neither_overflow_nor_become_nan(logit):
    x, label, out = np.float32([logit]), np.float32([1]), np.empty(1, "f4")

    nn.sigmoid(x, out)
    assert out[0] == pytest.approx(0.5 * (1 + np.sign(logit)))
    nn.sigmoid_cross_entropy(x, label, out)
    assert out[0] == pytest.approx(max(-logit, 0) or (math.log(2) if logit == 0 else 0), abs=1e-6)


def test_auc_equals_counting_pairs():
    """Probabilities on the bucket grid, so that buckets merge nothing that differs."""
    rng = np.random.default_rng(0)
    probabilities = (rng.integers(0, 64, 500) / 64).astype(np.float32)
    labels = (rng.random(500) < probabilities).astype(np.float32)
    positives, negatives = np.zeros(64, np.int64), np.zeros(64, np.int64)

    nn.auc_update_(positives, negatives, probabilities[:200], labels[:200])
    nn.auc_update_(positives, negatives, probabilities[200:], labels[200:])

    assert positives.sum() + negatives.sum() == 500
    assert nn.auc(positives, negatives) == pytest.approx(twins.auc(probabilities, labels))


def test_auc_of_one_class_is_not_a_number():
    counts = np.array([3, 4])

    assert math.isnan(nn.auc(counts, np.zeros(2, np.int64)))


def test_predictions_out_of_range_fall_into_the_outer_buckets():
    positives, negatives = np.zeros(4, np.int64), np.zeros(4, np.int64)
    probabilities = np.float32([-1, 0, 1, 2, np.inf, -np.inf, np.nan])

    nn.auc_update_(positives, negatives, probabilities, np.ones(7, np.float32))

    assert positives.tolist() == [4, 0, 0, 3]


def test_cross_entropy_of_an_infinite_logit_is_that_of_its_limit():
    logits = np.array([np.inf, np.inf, -np.inf, -np.inf], "f4")
    loss = np.empty(4, "f4")

    nn.sigmoid_cross_entropy(logits, np.array([0, 1, 0, 1], "f4"), loss)

    assert loss.tolist() == pytest.approx([np.inf, 0, 0, np.inf])


@pytest.mark.parametrize(
    ("row", "best"),
    [([1, np.nan, 3, 2], [1, 2]), ([np.nan, 1, np.nan, 3], [0, 2]), ([4, 3, 2, np.nan], [3, 0])],
)
@pytest.mark.parametrize("function", [nn.topk, nn.topk.python])
def test_nan_is_the_largest_as_in_numpy(function, row, best):
    x, values, indices = np.array([row], "f4"), np.empty((1, 2), "f4"), np.empty((1, 2), "i8")

    function(x, values, indices)

    assert indices.tolist() == [best]
    np.testing.assert_array_equal(values, x[:, best])
