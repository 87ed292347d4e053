"""Gradient clipping, public as `psrt.clip`: bounds for gradients, applied before regularisation.

Declared for all parameters of an optimizer (`grad_clip=`) or for one (`Param(clip=)`), which then
counts instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from psrt.core.attributes import PlainFields
from psrt.core.errors import ConfigError


@dataclass(frozen=True)
class ByValue(PlainFields):
    """Every number of a gradient is put into [min, max]; without `min` into [−max, max]."""

    max: float
    min: float | None = None


@dataclass(frozen=True)
class ByNorm(PlainFields):
    """g · norm / ‖g‖ where ‖g‖, over one gradient, is above `norm`."""

    norm: float


@dataclass(frozen=True)
class ByGlobalNorm(PlainFields):
    """g · norm / n where n is above `norm`: the norm over the gradients of all parameters that
    bear this declaration (Pascanu, Mikolov & Bengio 2013, algorithm 1)."""

    norm: float


Clip: TypeAlias = ByValue | ByNorm | ByGlobalNorm


def clip_problems(clip: Any) -> Iterator[str]:
    """What is wrong with what was declared as a clip."""
    if not isinstance(clip, ByValue | ByNorm | ByGlobalNorm):
        yield f"{clip!r} is no clip"
        return
    bad = [name for name, value in vars(clip).items() if not _is_bound(name, value)]
    for name in bad:
        yield f"{name} is {getattr(clip, name)!r}, not a number"
    if bad:
        return
    if isinstance(clip, ByValue):
        low = -clip.max if clip.min is None else clip.min
        if low > clip.max:
            yield f"min {low} is above max {clip.max}"
    elif clip.norm <= 0:
        yield f"norm is {clip.norm}, not above 0"


def _is_bound(name: str, value: object) -> bool:
    """Whether `value` is a number, an infinite one too, or left out where it may be."""
    left_out = name == "min" and value is None
    return left_out or (isinstance(value, int | float) and not math.isnan(value))


def check_clip(clip: Any) -> None:
    """Raise `ConfigError` for what is no clip, or one whose numbers make no sense."""
    problem = next(clip_problems(clip), "")
    if problem:
        raise ConfigError(
            f"clip {clip!r} is not usable: {problem}.",
            hint="Declare one of psrt.clip, such as psrt.clip.ByGlobalNorm(5.0).",
        )


__all__ = ["ByGlobalNorm", "ByNorm", "ByValue", "Clip"]
