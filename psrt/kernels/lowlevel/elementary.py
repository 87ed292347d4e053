"""Elementary functions for kernels to call: eˣ, ln(1 + t), erf, sigmoid.

The C library's float32 functions are called element by element and keep a loop from being
vectorised. Here they are polynomials in compiled float32 code (sigmoid: 4.2 → 1.2 ns an element),
good to a few units of the last place. Interpreted loops, which check gradients in float64, use
those of the C library.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from psrt.kernels.jit import device

_OPTIONS: Any = {"nogil": True, "error_model": "numpy", "_nrt": False, "forceinline": True}


def exp_of(x: Any) -> Any:
    """eˣ."""
    return np.float64(math.exp(x))


def log1p_of(t: Any) -> Any:
    """ln(1 + t) for 0 ≤ t ≤ 1."""
    return np.float64(math.log1p(t))


def erf_of(x: Any) -> Any:
    """The error function."""
    return np.float64(math.erf(x))


@device
def sigmoid_of(x: Any) -> Any:
    """1 / (1 + e⁻ˣ)."""
    return np.float32(1.0) / (np.float32(1.0) + exp_of(-x))


@overload(exp_of, jit_options=_OPTIONS)
def _exp_of_type(x: Any) -> Any:
    return _exp_float32 if x == types.float32 else _exp_float64


@overload(log1p_of, jit_options=_OPTIONS)
def _log1p_of_type(t: Any) -> Any:
    return _log1p_float32 if t == types.float32 else _log1p_float64


@overload(erf_of, jit_options=_OPTIONS)
def _erf_of_type(x: Any) -> Any:
    return _erf_float32 if x == types.float32 else _erf_float64


def _exp_float64(x: Any) -> Any:
    return math.exp(x)


def _log1p_float64(t: Any) -> Any:
    return math.log1p(t)


def _erf_float64(x: Any) -> Any:
    return math.erf(x)


def _exp_float32(x: Any) -> Any:
    """eˣ = 2ᵏ eʳ with |r| ≤ ln 2 / 2 (Cephes expf); the relative error is below 2e-7.

    x is cut to [−80, 87]: above eˣ leaves the range of float32, below products with it would leave
    that of the normal numbers, with which processors are ten times as fast. NaN stays NaN.
    """
    cut = np.float32(87.0) if x > np.float32(87.0) else x
    cut = np.float32(-80.0) if cut < np.float32(-80.0) else cut
    k = np.floor(cut * np.float32(1.44269504) + np.float32(0.5))
    r = cut - k * np.float32(0.693359375) + k * np.float32(2.12194440e-4)
    p = np.float32(1.9875691500e-4) * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    power = (np.int32(k) + np.int32(127)) << np.int32(23)  # the bits of 2ᵏ
    return (p * r * r + r + np.float32(1.0)) * np.int32(power).view(np.float32)


def _log1p_float32(t: Any) -> Any:
    """2 artanh(s), s = t / (2 + t) ≤ 1/3, by its series to s¹³; the relative error is below 3e-7.

    The square of a tiny s, which does not count any more, is kept among the normal numbers.
    """
    s = t / (np.float32(2.0) + t)
    z = s * s if s > np.float32(1e-15) else np.float32(1e-30)
    p = z * np.float32(1 / 13) + np.float32(1 / 11)
    p = p * z + np.float32(1 / 9)
    p = p * z + np.float32(1 / 7)
    p = p * z + np.float32(1 / 5)
    p = p * z + np.float32(1 / 3)
    return np.float32(2.0) * s * (np.float32(1.0) + z * p)


def _erf_float32(x: Any) -> Any:
    """1 − (a₁ t + … + a₅ t⁵) e^(−x²), t = 1 / (1 + 0.3275911 |x|), with the sign of x.

    Abramowitz and Stegun 7.1.26; the absolute error is below 5e-7 in float32.
    """
    size = abs(x)
    t = np.float32(1.0) / (np.float32(1.0) + np.float32(0.3275911) * size)
    p = np.float32(1.061405429) * t + np.float32(-1.453152027)
    p = p * t + np.float32(1.421413741)
    p = p * t + np.float32(-0.284496736)
    p = p * t + np.float32(0.254829592)
    value = np.float32(1.0) - p * t * exp_of(-x * x)
    return -value if x < 0 else value
