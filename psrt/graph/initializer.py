"""Initializers of parameters, public as `psrt.initializer`.

`Constant`, `Uniform`, `Normal` and `TruncatedNormal` are specs that pservers evaluate. `Xavier` and
`Msra` depend on the parameter's shape and are resolved to one of these when the layer is built, so
that values of a parameter stay a pure function of its spec.

The fans of a matrix (in, out) are its sizes; those of a filter (out, in, rows, columns) are the
channels times the elements of the window.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from psrt.core.specs import Constant, Initializer, Normal, TruncatedNormal, Uniform
from psrt.core.types import Shape
from psrt.graph.names import refuse_unknown


@dataclass(frozen=True)
class Xavier:
    """Variance 2 / (fan_in + fan_out), Glorot & Bengio 2010; 0 takes a fan from the shape."""

    uniform: bool = True
    fan_in: int = 0
    fan_out: int = 0

    def resolve(self, shape: Shape) -> Initializer:
        """Return the spec for a parameter of `shape`."""
        fan_in, fan_out = fans(shape)
        fan_sum = (self.fan_in or fan_in) + (self.fan_out or fan_out)
        return _of_fans(fan_sum, self.uniform)


@dataclass(frozen=True)
class Msra:
    """Variance 2 / fan_in, He et al. 2015; 0 takes the fan from the shape."""

    uniform: bool = True
    fan_in: int = 0

    def resolve(self, shape: Shape) -> Initializer:
        """Return the spec for a parameter of `shape`."""
        return _of_fans(self.fan_in or fans(shape)[0], self.uniform)


AnyInitializer: TypeAlias = Initializer | Xavier | Msra


def resolve(initializer: AnyInitializer, shape: Shape) -> Initializer:
    """Return the spec of an initializer for a parameter of `shape`."""
    return initializer.resolve(shape) if isinstance(initializer, Xavier | Msra) else initializer


def fan_problems(initializer: Xavier | Msra) -> Iterator[str]:
    """Yield the faults of the fans a user gave."""
    for name, fan in vars(initializer).items():
        if name != "uniform" and (not isinstance(fan, int | float) or not 0 <= fan < math.inf):
            yield f"{name} of its initializer is {fan!r}, not a number from 0 on"


def fans(shape: Shape) -> tuple[int, int]:
    """Return the numbers a unit reads, and the units that read a number."""
    if len(shape) <= 2:
        return shape[0], shape[-1]
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window


def _of_fans(fans: int, uniform: bool) -> Initializer:
    """Initializer of mean 0 and variance 2 / fans."""
    if not uniform:
        return Normal(0.0, math.sqrt(2.0 / fans))
    limit = math.sqrt(6.0 / fans)
    return Uniform(-limit, limit)


__all__ = ["Constant", "Msra", "Normal", "TruncatedNormal", "Uniform", "Xavier"]

if not TYPE_CHECKING:  # type checkers report unknown names themselves
    __getattr__ = refuse_unknown("psrt.initializer", "initializer", __all__)
