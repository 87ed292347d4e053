"""Activations agree with their formulas in float64, gradients with finite differences."""

from __future__ import annotations

import math

import numpy as np
import pytest

from psrt.kernels.ops import activations, nn

SIZES = [0, 1, 7, 1000]
ERF = np.vectorize(math.erf, otypes=[float])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gelu_tanh(x):
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


FORMULAS = {
    "leaky_relu": (lambda x, alpha: np.where(x > 0, x, alpha * x), (0.1,)),
    "elu": (lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x)), (0.7,)),
    "logsigmoid": (lambda x: np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x))), ()),
    "softplus": (lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), ()),
    "hard_sigmoid": (lambda x, slope, offset: np.clip(slope * x + offset, 0, 1), (0.2, 0.5)),
    "gelu": (lambda x: x / 2 * (1 + ERF(x / math.sqrt(2))), ()),
    "gelu_tanh": (gelu_tanh, ()),
    "swish": (lambda x, beta: x * sigmoid(beta * x), (1.5,)),
}
OF_OUT = {"elu", "logsigmoid", "softplus", "hard_sigmoid"}
"""Activations with derivatives computed from the output."""


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", FORMULAS)
def test_activation_and_its_derivative(name, size):
    formula, args = FORMULAS[name]
    x = np.random.default_rng(3).normal(0, 3, size).astype(np.float32)
    d = np.random.default_rng(4).normal(0, 1, size).astype(np.float32)
    out, grad_x = np.empty_like(x), np.empty_like(x)

    getattr(activations, name)(x, out, *args)
    seen = out if name in OF_OUT else x
    getattr(activations, f"{name}_grad")(seen, d, grad_x, *args)

    wide, step = x.astype(np.float64), 1e-6
    slope = (formula(wide + step, *args) - formula(wide - step, *args)) / (2 * step)
    np.testing.assert_allclose(out, formula(wide, *args), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(grad_x, d * slope, rtol=1e-4, atol=5e-6)


@pytest.mark.parametrize(
    ("kernel", "formula"),
    [
        (nn.sigmoid, sigmoid),
        (activations.softplus, FORMULAS["softplus"][0]),
        (activations.logsigmoid, FORMULAS["logsigmoid"][0]),
    ],
)
def test_elementary_functions_are_good_to_float32(kernel, formula):
    x = np.linspace(-79, 80, 200_001).astype(np.float32)
    out = np.empty_like(x)

    kernel(x, out)

    np.testing.assert_allclose(out, formula(x.astype(np.float64)), rtol=5e-7)


def test_gelu_is_good_to_a_few_units_of_the_last_place_of_its_argument():
    x = np.linspace(-20, 20, 100_001).astype(np.float32)
    out = np.empty_like(x)

    activations.gelu(x, out)

    error = np.abs(out - FORMULAS["gelu"][0](x.astype(np.float64)))
    assert (error <= 5e-7 * np.maximum(1, np.abs(x))).all()


@pytest.mark.parametrize("extreme", [-np.inf, -1e30, -1000.0, 1000.0, 1e30])
def test_sigmoid_saturates(extreme):
    out = np.empty(9, np.float32)

    nn.sigmoid(np.full(9, extreme, np.float32), out)

    np.testing.assert_allclose(out, float(extreme > 0), atol=1e-30)


@pytest.mark.parametrize("name", ["softplus", "gelu", "gelu_tanh", "logsigmoid"])
def test_nan_stays_nan(name):
    out = np.zeros(20, np.float32)

    getattr(activations, name)(np.full(20, np.nan, np.float32), out)

    assert np.isnan(out).all()


def test_gradient_of_a_cut_is_0_outside():
    x = np.array([-1, 0, 0.5, 1, 2], np.float32)
    grad_x = np.empty_like(x)

    activations.between_grad(x, np.full(5, 3, np.float32), grad_x, 0.0, 1.0)

    np.testing.assert_array_equal(grad_x, [0, 0, 3, 0, 0])
