"""Cost per op and per span, the anatomy of a step, and both as text.

Plain data and pure functions; `profile` records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from psrt.core.columns import aligned

_HEADINGS = ("op", "layer", "line", "role", "calls", "total ms", "mean µs", "of step")
_NUMBERS = 4
"""The number of right-aligned columns, the last ones."""


@dataclass(frozen=True)
class Label:
    """The op of an event, or a named span of other work.

    `name` is the type of the op and `category` its role, or those given to `Profiler.span`.
    """

    name: str
    category: str
    layer: str = ""
    origin: str = ""
    is_op: bool = False


@dataclass(frozen=True)
class Cost:
    """All events of one label; for a span, the time not covered by ops and spans inside it."""

    label: Label
    calls: int
    total_ns: int

    @property
    def mean_us(self) -> float:
        return self.total_ns / self.calls / 1e3


@dataclass(frozen=True)
class StepTime:
    """Totals of all steps, on the threads that ran them.

    `waits_ns` is time spent waiting for data, pservers or other threads outside ops;
    `elsewhere_ns` is the time of ops on threads outside a step.
    """

    steps: int
    wall_ns: int
    ops_ns: int
    waits_ns: int
    elsewhere_ns: int = 0

    @property
    def between_ns(self) -> int:
        """The remaining time: Python that runs, feeds, fetches and profiles."""
        return self.wall_ns - self.ops_ns - self.waits_ns

    def share(self, part_ns: int) -> float:
        """`part_ns` as a fraction of the wall time of all steps; 0 without steps."""
        return part_ns / self.wall_ns if self.wall_ns else 0.0

    def __str__(self) -> str:
        elsewhere = f"{self.elsewhere_ns / 1e6:,.1f} ms in ops"
        if not self.steps:
            return f"no step was taken; {elsewhere}"
        text = (
            f"{self.steps:,} steps of {self.wall_ns / self.steps / 1e6:,.3f} ms: "
            f"ops {self._part(self.ops_ns)}, waits {self._part(self.waits_ns)}, "
            f"Python between ops {self._part(self.between_ns)}"
        )
        return f"{text}; outside of steps {elsewhere}" if self.elsewhere_ns else text

    def _part(self, part_ns: int) -> str:
        return f"{part_ns / self.steps / 1e6:,.3f} ms ({100 * self.share(part_ns):.1f} %)"


def table(costs: Iterable[Cost], time: StepTime, count: int) -> str:
    """The `count` most expensive ops, all spans, and a last line with the anatomy of a step."""
    ordered = sorted(costs, key=lambda cost: -cost.total_ns)
    ops = [cost for cost in ordered if cost.label.is_op]
    spans = [cost for cost in ordered if not cost.label.is_op]
    rows = [_HEADINGS, *(_row(cost, time) for cost in ops[:count])]
    rows += [_rest(ops[count:], time)] if ops[count:] else []
    rows += [_row(cost, time) for cost in spans]
    return "\n".join([*aligned(rows, range(len(_HEADINGS) - _NUMBERS)), str(time)])


def _row(cost: Cost, time: StepTime) -> tuple[str, ...]:
    label = cost.label
    name = label.name if label.is_op else f"({label.name})"
    return (name, label.layer, label.origin, label.category, *_numbers(cost, time))


def _rest(costs: Sequence[Cost], time: StepTime) -> tuple[str, ...]:
    calls, total_ns = sum(cost.calls for cost in costs), sum(cost.total_ns for cost in costs)
    return _row(Cost(Label(f"{len(costs)} more", "", is_op=True), calls, total_ns), time)


def _numbers(cost: Cost, time: StepTime) -> tuple[str, ...]:
    share = f"{100 * time.share(cost.total_ns):.1f} %" if time.steps else "-"
    return f"{cost.calls:,}", f"{cost.total_ns / 1e6:,.1f}", f"{cost.mean_us:,.1f}", share
