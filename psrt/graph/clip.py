"""Gradient clipping, public as `psrt.clip`: bounds for gradients, applied before regularisation.

Declared for all parameters of an optimizer (`grad_clip=`), or for one (`Param(clip=)`), which
overrides the optimizer's. Raises `ConfigError` for unusable numbers when `minimize` is called.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from psrt.core.attributes import PlainFields
from psrt.core.errors import ConfigError
from psrt.graph.names import refuse_unknown


@dataclass(frozen=True)
class ByValue(PlainFields):
    """Cut every element of a gradient to [min, max]; without `min` to [−max, max]."""

    max: float
    min: float | None = None


@dataclass(frozen=True)
class ByNorm(PlainFields):
    """Scale a gradient g to g · norm / ‖g‖ where ‖g‖, over one parameter, is above `norm`."""

    norm: float


@dataclass(frozen=True)
class ByGlobalNorm(PlainFields):
    """Scale gradients g to g · norm / n where n is above `norm`.

    n is the norm over the gradients of all parameters with this declaration (Pascanu, Mikolov &
    Bengio 2013, algorithm 1).
    """

    norm: float


Clip: TypeAlias = ByValue | ByNorm | ByGlobalNorm


def clip_problems(clip: Any) -> Iterator[str]:
    """Yield the faults of a declared clip."""
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
    """Return whether `value` is a number, maybe infinite, or omitted where it may be."""
    left_out = name == "min" and value is None
    return left_out or (isinstance(value, int | float) and not math.isnan(value))


def check_clip(clip: Any) -> None:
    """Raise `ConfigError` for a value that is no clip, or a clip with unusable numbers."""
    problem = next(clip_problems(clip), "")
    if problem:
        raise ConfigError(
            f"clip {clip!r} is not usable: {problem}.",
            hint="Declare one of psrt.clip, such as psrt.clip.ByGlobalNorm(5.0).",
        )


__all__ = ["ByGlobalNorm", "ByNorm", "ByValue", "Clip"]

if not TYPE_CHECKING:  # type checkers report unknown names themselves
    __getattr__ = refuse_unknown("psrt.clip", "clip", __all__)
