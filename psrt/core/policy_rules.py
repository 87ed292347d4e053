"""Which options of a sparse table make sense: admission, score, lifecycle, growth.

Pservers refuse others when a table is registered, and a job file that says them is not read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from psrt.core.specs import (
    CountFilter,
    Growth,
    Lifecycle,
    Probability,
    Score,
    ShowClick,
    SparseTableSpec,
)

_MOST = 1 << 62
_MOST_WAITING = 1 << 32


def policy_problems(spec: SparseTableSpec) -> Iterator[str]:
    """What is wrong with the options of a table, in words that follow "cannot be registered:"."""
    yield from score_problems(spec.score)
    if spec.admission is not None:
        yield from admission_problems(spec.admission)
    if spec.lifecycle is not None:
        yield from lifecycle_problems(spec.lifecycle)
    if spec.growth is not None:
        yield from growth_problems(spec.growth, spec.width)


def score_problems(score: Any) -> Iterator[str]:
    if not isinstance(score, Score):
        yield f"{score!r} is no score"
        return
    for name, value in vars(score).items():
        yield from _out_of(value, 0, _MOST, f"{name} of its score")


def admission_problems(rule: Any) -> Iterator[str]:
    match rule:
        case CountFilter():
            yield from _out_of(rule.count, 0, _MOST, "count of its admission", whole=True)
        case Probability():
            yield from _out_of(rule.probability, 0, 1, "probability of its admission")
        case ShowClick():
            yield from _out_of(rule.threshold, 0, _MOST, "threshold of its admission")
            if not all(isinstance(name, str) and name for name in (rule.show, rule.click)):
                yield f"{rule.show!r} and {rule.click!r} name no vars for shows and clicks"
        case _:
            yield f"{rule!r} is no admission"
    if isinstance(rule, CountFilter | ShowClick):
        waiting = rule.waiting_ids
        yield from _out_of(waiting, 1, _MOST_WAITING, "waiting_ids of its admission", whole=True)


def lifecycle_problems(life: Any) -> Iterator[str]:
    if not isinstance(life, Lifecycle):
        yield f"{life!r} is no lifecycle"
        return
    for name in ("ttl_rounds", "max_bytes"):
        yield from _out_of(getattr(life, name), 0, _MOST, f"{name} of its lifecycle", whole=True)
    for name in ("ttl_days", "delete_score"):
        yield from _out_of(getattr(life, name), 0, _MOST, f"{name} of its lifecycle")
    yield from _out_of(life.decay, 1e-6, 1, "decay of its lifecycle")


def growth_problems(growth: Any, width: int = _MOST) -> Iterator[str]:
    """`width` is how many weights a grown row has, if that is known."""
    if not isinstance(growth, Growth):
        yield f"{growth!r} is no growth"
        return
    yield from _out_of(growth.embedx_threshold, 0, _MOST, "embedx_threshold of its growth")
    start = growth.embed_width
    yield from _out_of(start, 1, width - 1, "embed_width of its growth", whole=True)


def _out_of(
    value: Any, least: float, most: float, what: str, *, whole: bool = False
) -> Iterator[str]:
    """Nothing, if `value` is a number from `least` to `most`."""
    kinds: Any = int if whole else int | float
    if isinstance(value, bool) or not isinstance(value, kinds):
        yield f"{what} is {value!r}, not a {'whole ' if whole else ''}number"
    elif not (math.isfinite(value) and least <= value <= most):
        yield f"{what} is {value}, not in [{least:g}, {most:g}]"
