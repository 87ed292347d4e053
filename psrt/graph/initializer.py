"""Initializers of parameters, public as `psrt.initializer`.

`Constant`, `Uniform` and `Normal` are specs a pserver understands. `Xavier` depends on the shape of
the parameter and is resolved to one of them when the layer is built, so that values of a parameter
stay a pure function of its spec.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from psrt.core.specs import Constant, Initializer, Normal, Uniform
from psrt.core.types import Shape


@dataclass(frozen=True)
class Xavier:
    """Glorot & Bengio 2010: variance 2 / (fan_in + fan_out); 0 takes the fan from the shape."""

    uniform: bool = True
    fan_in: int = 0
    fan_out: int = 0

    def resolve(self, shape: Shape) -> Initializer:
        fan_sum = (self.fan_in or shape[0]) + (self.fan_out or shape[-1])
        if self.uniform:
            limit = math.sqrt(6.0 / fan_sum)
            return Uniform(-limit, limit)
        return Normal(0.0, math.sqrt(2.0 / fan_sum))


AnyInitializer: TypeAlias = Initializer | Xavier


def resolve(initializer: AnyInitializer, shape: Shape) -> Initializer:
    return initializer.resolve(shape) if isinstance(initializer, Xavier) else initializer


__all__ = ["Constant", "Normal", "Uniform", "Xavier"]
