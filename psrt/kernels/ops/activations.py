"""Activations that numpy would compute in several passes, and their derivatives, float32.

All arrays are flat and of one size n. A derivative takes what its first argument names: the input
`x` or the output `out`; `d` is the gradient of the output, `grad_x` is written. Few programs need
more than one of them, so they are not warmed up.
"""

from __future__ import annotations

import math

import numpy as np

from psrt.core.types import F32
from psrt.kernels.jit import kernel
from psrt.kernels.lowlevel import erf_of, exp_of, log1p_of, sigmoid_of

_0, _1, _2, _HALF = np.float32(0), np.float32(1), np.float32(2), np.float32(0.5)
_ROOT_HALF = np.float32(math.sqrt(0.5))
_NORMAL = np.float32(1 / math.sqrt(2 * math.pi))
_GELU = np.float32(2 * math.sqrt(2 / math.pi))
_CUBIC = np.float32(0.044715)


@kernel("const f4[::1], f4[::1], f4 -> void", group="op")
def leaky_relu(x: F32, out: F32, alpha: float) -> None:
    """`out` = x where x > 0, else alpha · x."""
    for i in range(len(x)):
        out[i] = x[i] if x[i] > 0 else alpha * x[i]


@kernel("const f4[::1], const f4[::1], f4[::1], f4 -> void", group="op")
def leaky_relu_grad(x: F32, d: F32, grad_x: F32, alpha: float) -> None:
    """`grad_x` = d where x > 0, else alpha · d."""
    for i in range(len(x)):
        grad_x[i] = d[i] if x[i] > 0 else alpha * d[i]


@kernel("const f4[::1], f4[::1], f4 -> void", group="op")
def elu(x: F32, out: F32, alpha: float) -> None:
    """`out` = x where x > 0, else alpha · (eˣ − 1)."""
    for i in range(len(x)):
        out[i] = x[i] if x[i] > 0 else alpha * math.expm1(x[i])


@kernel("const f4[::1], const f4[::1], f4[::1], f4 -> void", group="op")
def elu_grad(out: F32, d: F32, grad_x: F32, alpha: float) -> None:
    """`grad_x` = d where out > 0, else d · (out + alpha)."""
    for i in range(len(out)):
        grad_x[i] = d[i] if out[i] > 0 else d[i] * (out[i] + alpha)


@kernel("const f4[::1], f4[::1] -> void", group="op")
def logsigmoid(x: F32, out: F32) -> None:
    """`out` = min(x, 0) − ln(1 + e^−|x|), which does not overflow."""
    for i in range(len(x)):
        out[i] = min(x[i], _0) - log1p_of(exp_of(-abs(x[i])))


@kernel("const f4[::1], const f4[::1], f4[::1] -> void", group="op")
def logsigmoid_grad(out: F32, d: F32, grad_x: F32) -> None:
    """`grad_x` = d · (1 − e^out)."""
    for i in range(len(out)):
        grad_x[i] = d[i] * (_1 - exp_of(out[i]))


@kernel("const f4[::1], f4[::1] -> void", group="op")
def softplus(x: F32, out: F32) -> None:
    """`out` = max(x, 0) + ln(1 + e^−|x|), which does not overflow."""
    for i in range(len(x)):
        out[i] = max(x[i], _0) + log1p_of(exp_of(-abs(x[i])))


@kernel("const f4[::1], const f4[::1], f4[::1] -> void", group="op")
def softplus_grad(out: F32, d: F32, grad_x: F32) -> None:
    """`grad_x` = d · sigmoid(x) = d · (1 − e^−out)."""
    for i in range(len(out)):
        grad_x[i] = d[i] * (_1 - exp_of(-out[i]))


@kernel("const f4[::1], f4[::1], f4, f4 -> void", group="op")
def hard_sigmoid(x: F32, out: F32, slope: float, offset: float) -> None:
    """`out` = slope · x + offset, cut to [0, 1]."""
    for i in range(len(x)):
        out[i] = max(_0, min(_1, slope * x[i] + offset))


@kernel("const f4[::1], const f4[::1], f4[::1], f4, f4 -> void", group="op")
def hard_sigmoid_grad(out: F32, d: F32, grad_x: F32, slope: float, offset: float) -> None:
    """`grad_x` = slope · d where 0 < out < 1, else 0."""
    for i in range(len(out)):
        grad_x[i] = slope * d[i] if 0 < out[i] < 1 else _0


@kernel("const f4[::1], const f4[::1], f4[::1], f4, f4 -> void", group="op")
def between_grad(seen: F32, d: F32, grad_x: F32, low: float, high: float) -> None:
    """`grad_x` = d where low < seen < high, else 0: the derivative of a cut."""
    for i in range(len(seen)):
        grad_x[i] = d[i] if low < seen[i] < high else _0


@kernel("const f4[::1], f4[::1] -> void", group="op")
def gelu(x: F32, out: F32) -> None:
    """`out` = x/2 · (1 + erf(x / √2)) (Hendrycks and Gimpel 2016)."""
    for i in range(len(x)):
        out[i] = _HALF * x[i] * (_1 + erf_of(x[i] * _ROOT_HALF))


@kernel("const f4[::1], const f4[::1], f4[::1] -> void", group="op")
def gelu_grad(x: F32, d: F32, grad_x: F32) -> None:
    """`grad_x` = d · (Φ(x) + x φ(x)), Φ and φ those of the normal distribution."""
    for i in range(len(x)):
        below = _HALF * (_1 + erf_of(x[i] * _ROOT_HALF))
        grad_x[i] = d[i] * (below + x[i] * _NORMAL * exp_of(-_HALF * x[i] * x[i]))


@kernel("const f4[::1], f4[::1] -> void", group="op")
def gelu_tanh(x: F32, out: F32) -> None:
    """`out` = x/2 · (1 + tanh u) = x · sigmoid(2u), u = √(2/π) (x + 0.044715 x³)."""
    for i in range(len(x)):
        out[i] = x[i] * sigmoid_of(_GELU * (x[i] + _CUBIC * x[i] * x[i] * x[i]))


@kernel("const f4[::1], const f4[::1], f4[::1] -> void", group="op")
def gelu_tanh_grad(x: F32, d: F32, grad_x: F32) -> None:
    """`grad_x` = d · (s + x s (1 − s) (2u)′), s = sigmoid(2u)."""
    for i in range(len(x)):
        square = _CUBIC * x[i] * x[i]
        s = sigmoid_of(_GELU * x[i] * (_1 + square))
        slope = _GELU * (_1 + (_1 + _2) * square)
        grad_x[i] = d[i] * (s + x[i] * s * (_1 - s) * slope)


@kernel("const f4[::1], f4[::1], f4 -> void", group="op")
def swish(x: F32, out: F32, beta: float) -> None:
    """`out` = x · sigmoid(beta · x)."""
    for i in range(len(x)):
        out[i] = x[i] * sigmoid_of(beta * x[i])


@kernel("const f4[::1], const f4[::1], f4[::1], f4 -> void", group="op")
def swish_grad(x: F32, d: F32, grad_x: F32, beta: float) -> None:
    """`grad_x` = d · (s + beta x s (1 − s)), s = sigmoid(beta · x)."""
    for i in range(len(x)):
        s = sigmoid_of(beta * x[i])
        grad_x[i] = d[i] * (s + beta * x[i] * s * (_1 - s))
