"""Steps while cuts are written against steps of equally long quiet times before them; pure.

All times are seconds of `time.time()`. A step lasts from the end of the one before to its own.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from benchmarks.measuring.harness import Figures

SETTLED_S = 0.25
"""Of a quiet time, its first part does not count: what a cut has put off is made up for then."""


@dataclass(frozen=True)
class Span:
    """A time, and the steps of all trainers that ended in it, in seconds each."""

    seconds: float
    steps: Sequence[float]

    @property
    def rate(self) -> float:
        return len(self.steps) / self.seconds

    @property
    def longest(self) -> float:
        return max(self.steps, default=self.seconds)


@dataclass(frozen=True)
class Cut:
    """A cut from its request to its manifest; `quiet_from` is the end of the one before.

    `cpu_s` are CPU seconds of all processes since their start, at the time `settled` before the
    cut, when it began, and when it ended.
    """

    quiet_from: float
    begun: float
    ended: float
    settled: float = 0.0
    cpu_s: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def spans(self, trainers: Sequence[Sequence[float]]) -> tuple[Span, Span]:
        """The time of the cut and the quiet one, of the ends of all trainers' steps.

        The quiet one is as long, or as long as there was one.
        """
        first = max(self.quiet_from + SETTLED_S, self.begun - (self.ended - self.begun))
        return span(self.begun, self.ended, trainers), span(first, self.begun, trainers)

    def cpu_of_steps(self, trainers: Sequence[Sequence[float]]) -> tuple[float, float]:
        """CPU seconds of all processes for a step of the cut, and for one before it."""
        quiet, before, after = self.cpu_s
        during = span(self.begun, self.ended, trainers).steps
        settled = span(self.settled, self.begun, trainers).steps
        return (after - before) / max(1, len(during)), (before - quiet) / max(1, len(settled))


def span(first: float, last: float, trainers: Sequence[Sequence[float]]) -> Span:
    steps = [b - a for ends in trainers for a, b in pairwise(ends) if first < b <= last]
    return Span(last - first, steps)


def figures(cuts: Sequence[Cut], trainers: Sequence[Sequence[float]]) -> Figures:
    """Milliseconds of steps, and shares; raises `ValueError` for cuts without a quiet time."""
    pairs = [cut.spans(trainers) for cut in cuts]
    if any(quiet.seconds <= 0 for _, quiet in pairs):
        raise ValueError("a cut began before the quiet time behind the one before was over")
    during = [step for busy, _ in pairs for step in busy.steps]
    before = [step for _, quiet in pairs for step in quiet.steps]
    cpu = [cut.cpu_of_steps(trainers) for cut in cuts]
    extra = [busy.longest - quiet.longest for busy, quiet in pairs]
    shares = [quiet / busy for busy, quiet in cpu if busy]
    return {
        "cut_median_s": round(statistics.median(busy.seconds for busy, _ in pairs), 3),
        "step_ms": {"cut": percentiles(during), "quiet": percentiles(before)},
        "extra_p99_ms": ms(float(np.percentile(during, 99) - np.percentile(before, 99))),
        "longest_extra_ms": {"median": ms(statistics.median(extra)), "worst": ms(max(extra))},
        "throughput_share": round(statistics.median(b.rate / q.rate for b, q in pairs), 3),
        "cpu_ms_per_step": {
            "cut": ms(statistics.median(busy for busy, _ in cpu)),
            "quiet": ms(statistics.median(quiet for _, quiet in cpu)),
        },
        "cpu_share": round(statistics.median(shares or [0.0]), 3),
    }


def percentiles(steps: Sequence[float]) -> Figures:
    found = {f"p{each}": ms(float(np.percentile(steps, each))) for each in (50, 99)}
    return found | {"longest": ms(max(steps)), "steps": len(steps)}


def ms(seconds: float) -> float:
    return round(seconds * 1e3, 1)
