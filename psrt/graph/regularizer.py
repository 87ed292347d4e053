"""Regularisation, public as `psrt.regularizer`: what is added to a gradient to keep weights small.

Declared for all parameters of an optimizer (`regularization=`) or for one (`Param(regularizer=)`),
which then counts instead. Of a sparse table only the rows of the step are regularised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class L1Decay:
    """g + coeff · sign(w): the gradient of coeff · Σ|w|."""

    coeff: float = 0.0


@dataclass(frozen=True)
class L2Decay:
    """g + coeff · w: the gradient of coeff / 2 · Σw²."""

    coeff: float = 0.0


Regularizer: TypeAlias = L1Decay | L2Decay

__all__ = ["L1Decay", "L2Decay", "Regularizer"]
