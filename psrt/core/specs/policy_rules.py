"""Legal options of a sparse table: admission, score, lifecycle, growth.

Other options raise an error where a program states them (`TableOptions`), in a job file, and when a
pserver registers a table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from psrt.core.specs.admission import CountFilter, Probability, Score, ShowClick
from psrt.core.specs.lifecycle import Growth, Lifecycle

MOST_SHOWS = 1 << 24
"""Shows are counted in float32, where adding 1 to this number changes nothing."""

MOST_ROUNDS = 1 << 29
"""Ages are stored modulo 2³¹, and have to be distinct from those of younger rows."""

MOST_DAYS = 10**6

_MOST = 1 << 62
_MOST_WAITING = 1 << 32
_SHOWN = 40  # characters of a value that is refused: a stranger's may have thousands of digits


class HasOptions(Protocol):
    """`TableOptions`, or the spec of a table."""

    @property
    def admission(self) -> Any: ...
    @property
    def score(self) -> Any: ...
    @property
    def lifecycle(self) -> Any: ...
    @property
    def growth(self) -> Any: ...


def option_problems(options: HasOptions, width: int = _MOST) -> Iterator[str]:
    """Yield the problems of options; `width` is the number of weights of a grown row, if known."""
    yield from score_problems(options.score)
    if options.admission is not None:
        yield from admission_problems(options.admission)
    if options.lifecycle is not None:
        yield from lifecycle_problems(options.lifecycle)
    if options.growth is not None:
        yield from growth_problems(options.growth, width)


def score_problems(score: Any) -> Iterator[str]:
    if not isinstance(score, Score):
        yield f"{score!r} is no score"
        return
    for name, value in vars(score).items():
        yield from _out_of(value, 0, _MOST, f"{name} of its score")


def admission_problems(rule: Any) -> Iterator[str]:
    match rule:
        case CountFilter():
            yield from _out_of(rule.count, 0, MOST_SHOWS, "count of its admission", whole=True)
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
    for name, most in (("ttl_rounds", MOST_ROUNDS), ("max_bytes", _MOST)):
        yield from _out_of(getattr(life, name), 0, most, f"{name} of its lifecycle", whole=True)
    for name, most in (("ttl_days", MOST_DAYS), ("delete_score", _MOST)):
        yield from _out_of(getattr(life, name), 0, most, f"{name} of its lifecycle")
    yield from _out_of(life.decay, 1e-6, 1, "decay of its lifecycle")


def growth_problems(growth: Any, width: int = _MOST) -> Iterator[str]:
    """Yield the problems of `growth`; `width` is the number of weights of a grown row, if known."""
    if not isinstance(growth, Growth):
        yield f"{growth!r} is no growth"
        return
    yield from _out_of(growth.embedx_threshold, 0, _MOST, "embedx_threshold of its growth")
    start = growth.embed_width
    yield from _out_of(start, 1, width - 1, "embed_width of its growth", whole=True)


def _out_of(
    value: Any, least: float, most: float, what: str, *, whole: bool = False
) -> Iterator[str]:
    """Yield a problem unless `value` is a number from `least` to `most`."""
    kinds: Any = int if whole else int | float
    if isinstance(value, bool) or not isinstance(value, kinds):
        yield f"{what} is {value!r}, not a {'whole ' if whole else ''}number"
    elif not least <= value <= most:
        yield f"{what} is {str(value)[:_SHOWN]}, not in [{least:.10g}, {most:.10g}]"
