"""Tests of all elements of a var, as scalars of shape (1,) or along dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from psrt.fluid.adapting.composed.calls import called
from psrt.fluid.names import Variable
from psrt.graph import layers as psrt_layers

LARGEST = float(np.finfo(np.float32).max)

_Axes: TypeAlias = int | Sequence[int] | None


def reduce_all(
    input: Variable, dim: _Axes = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """True where all elements along `dim`, or all of the var, are True."""
    return _reduced(psrt_layers.reduce_min, input, dim, keep_dim)


def reduce_any(
    input: Variable, dim: _Axes = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """True where an element along `dim`, or of the var, is True."""
    return _reduced(psrt_layers.reduce_max, input, dim, keep_dim)


def isfinite(x: Variable) -> Variable:
    """True if no element is infinite or NaN."""
    return reduce_all(_is_finite(x))


def has_nan(x: Variable) -> Variable:
    """True if an element is NaN."""
    return reduce_any(called(psrt_layers.not_equal, x, x))


def has_inf(x: Variable) -> Variable:
    """True if an element is infinite."""
    is_number = called(psrt_layers.equal, x, x)
    is_infinite = called(psrt_layers.logical_xor, is_number, _is_finite(x))
    return reduce_any(is_infinite)


def _is_finite(x: Variable) -> Variable:
    return called(psrt_layers.abs, x) <= LARGEST


def _reduced(reduce: Any, input: Variable, dim: _Axes, keep_dim: bool) -> Variable:
    numbers = called(psrt_layers.cast, input, "float32")
    return called(psrt_layers.cast, called(reduce, numbers, dim, keep_dim), "bool")


__all__ = ["has_inf", "has_nan", "isfinite", "reduce_all", "reduce_any"]
