"""Gradient clipping, public as `psrt.clip`: bounds for gradients, applied before regularisation.

Declared for all parameters of an optimizer (`grad_clip=`) or for one (`Param(clip=)`), which then
counts instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class ByValue:
    """Every number of a gradient is put into [min, max]; without `min` into [−max, max]."""

    max: float
    min: float | None = None


@dataclass(frozen=True)
class ByNorm:
    """g · norm / ‖g‖ where ‖g‖, over one gradient, is above `norm`."""

    norm: float


@dataclass(frozen=True)
class ByGlobalNorm:
    """g · norm / n where n is above `norm`: the norm over the gradients of all parameters that
    bear this declaration (Pascanu, Mikolov & Bengio 2013, algorithm 1)."""

    norm: float


Clip: TypeAlias = ByValue | ByNorm | ByGlobalNorm

__all__ = ["ByGlobalNorm", "ByNorm", "ByValue", "Clip"]
