"""Initializers of parameters, public as `psrt.initializer`.

`Constant`, `Uniform`, `Normal` and `TruncatedNormal` are specs a pserver understands. `Xavier` and
`Msra` depend on the shape of the parameter and are resolved to one of them when the layer is built,
so that values of a parameter stay a pure function of its spec.

Of a matrix (in, out) the fans are its sizes; of a filter (out, in, rows, columns) they are the
channels times the elements of the window.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from psrt.core.specs import Constant, Initializer, Normal, TruncatedNormal, Uniform
from psrt.core.types import Shape


@dataclass(frozen=True)
class Xavier:
    """Glorot & Bengio 2010: variance 2 / (fan_in + fan_out); 0 takes the fan from the shape."""

    uniform: bool = True
    fan_in: int = 0
    fan_out: int = 0

    def resolve(self, shape: Shape) -> Initializer:
        fan_in, fan_out = fans(shape)
        fan_sum = (self.fan_in or fan_in) + (self.fan_out or fan_out)
        return _of_fans(fan_sum, self.uniform)


@dataclass(frozen=True)
class Msra:
    """He et al. 2015: variance 2 / fan_in; 0 takes the fan from the shape."""

    uniform: bool = True
    fan_in: int = 0

    def resolve(self, shape: Shape) -> Initializer:
        return _of_fans(self.fan_in or fans(shape)[0], self.uniform)


AnyInitializer: TypeAlias = Initializer | Xavier | Msra


def resolve(initializer: AnyInitializer, shape: Shape) -> Initializer:
    return initializer.resolve(shape) if isinstance(initializer, Xavier | Msra) else initializer


def fan_problems(initializer: Xavier | Msra) -> Iterator[str]:
    """What is wrong with the fans a user gave."""
    for name, fan in vars(initializer).items():
        if name != "uniform" and (not isinstance(fan, int | float) or not 0 <= fan < math.inf):
            yield f"{name} of its initializer is {fan!r}, not a number from 0 on"


def fans(shape: Shape) -> tuple[int, int]:
    """How many numbers a unit reads, and how many units read a number."""
    if len(shape) <= 2:
        return shape[0], shape[-1]
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window


def _of_fans(fans: int, uniform: bool) -> Initializer:
    """Of mean 0 and variance 2 / fans."""
    if not uniform:
        return Normal(0.0, math.sqrt(2.0 / fans))
    limit = math.sqrt(6.0 / fans)
    return Uniform(-limit, limit)


__all__ = ["Constant", "Msra", "Normal", "TruncatedNormal", "Uniform", "Xavier"]
