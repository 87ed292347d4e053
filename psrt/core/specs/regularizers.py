"""Regularizers as plain frozen data: terms added to a gradient to keep weights small.

Public through `psrt.core.specs`, and to users as `psrt.regularizer`. They are applied right before
the optimizer: by `psrt.kernels.optimizers.decay` on pservers, by ops of the program in training
without pservers and under Geo.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from psrt.core.attributes import PlainFields


@dataclass(frozen=True)
class L1Decay(PlainFields):
    """g + coeff · sign(w): the gradient of coeff · Σ|w|."""

    coeff: float = 0.0


@dataclass(frozen=True)
class L2Decay(PlainFields):
    """g + coeff · w: the gradient of coeff / 2 · Σw²."""

    coeff: float = 0.0


Regularizer: TypeAlias = L1Decay | L2Decay
