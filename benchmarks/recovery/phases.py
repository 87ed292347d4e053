"""The parts of a recovery, from what processes report: pure functions of times.

All times are seconds of `time.time()`; a duration is in seconds. A step ends when the
trainer's loop goes on to the next batch.
"""

from __future__ import annotations

import itertools
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from benchmarks.measuring.harness import Figures

KERNELS = re.compile(r"kernels ready in ([\d.]+) s")
TABLES = re.compile(r"restored \d+ tables in ([\d.]+) s")


@dataclass(frozen=True)
class TrainerTimes:
    """Ends of the steps of one trainer, and what it has logged about recovered pservers."""

    fill_steps: int
    ends: Sequence[float]
    events: Sequence[tuple[str, float]]

    def longest_gap(self, first: float, last: float) -> float:
        """The longest time between the ends of two steps, of which the later is in the span."""
        pairs = zip(self.ends, self.ends[1:], strict=False)
        return max((b - a for a, b in pairs if first <= b <= last), default=0.0)

    def longest_before(self, last: float) -> float:
        """The longest time between the ends of two steps that ended before `last`.

        Steps that fill tables do not count.
        """
        ends = [each for each in self.ends[self.fill_steps :] if each <= last]
        return max((b - a for a, b in itertools.pairwise(ends)), default=0.0)

    def after(self, name: str, first: float, last: float) -> float | None:
        """The time of an event between two times."""
        times = (at for event, at in self.events if event == name and first <= at <= last)
        return next(times, None)


class Recovery(Protocol):
    """One kill and what followed."""

    killed: float

    def phases(self, end: float, trainers: Sequence[TrainerTimes]) -> dict[str, float | None]:
        """Seconds of each part, of events before `end`; None where nothing was logged."""
        ...


@dataclass(frozen=True)
class Failover:
    """One kill of a pserver whose backup takes over."""

    pserver: int
    killed: float

    def phases(self, end: float, trainers: Sequence[TrainerTimes]) -> dict[str, float | None]:
        noticed = times_of("deposed", self.killed, end, trainers)
        served = times_of("served", self.killed, end, trainers)
        return {
            "noticed": min(noticed) - self.killed if noticed else None,
            "served": max(served) - min(noticed) if noticed and served else None,
            "whole": max(served) - self.killed if served else None,
        }


@dataclass(frozen=True)
class KilledPserver:
    """One kill: its time, that of the new process's start, and of its ready file."""

    pserver: int
    killed: float
    started: float
    ready: float
    log: str

    def phases(self, end: float, trainers: Sequence[TrainerTimes]) -> dict[str, float | None]:
        kernels, tables = seconds_of(KERNELS, self.log), seconds_of(TABLES, self.log)
        whole = self.ready - self.started
        met = times_of("met", self.killed, end, trainers)
        resent = times_of("resent", self.killed, end, trainers)
        return {
            "noticed": self.started - self.killed,
            "process": whole - (kernels or 0.0),
            "kernels": kernels,
            "load": tables,
            "met": max(met) - self.ready if met else None,
            "resend": max(resent) - max(met) if met and resent else None,
            "whole": max(resent) - self.killed if resent else None,
        }


def figures(kills: Sequence[Recovery], trainers: Sequence[TrainerTimes]) -> Figures:
    """Gaps of all trainers after all kills, gaps without a kill, and medians of the phases."""
    ends = [each.killed for each in kills[1:]] + [float("inf")]
    gaps = [
        trainer.longest_gap(kill.killed, end)
        for kill, end in zip(kills, ends, strict=True)
        for trainer in trainers
    ]
    quiet = [each.longest_before(kills[0].killed) for each in trainers]
    parts = [kill.phases(end, trainers) for kill, end in zip(kills, ends, strict=True)]
    return {
        "gap_median_s": round(statistics.median(gaps), 3),
        "gap_worst_s": round(max(gaps), 3),
        "gaps_s": [round(each, 3) for each in gaps],
        "gap_without_kill_s": round(max(quiet), 3),
        "wholes_s": [round(part["whole"] or -1.0, 3) for part in parts],
        "phases_median_s": {name: median([part[name] for part in parts]) for name in parts[0]},
    }


def times_of(
    event: str, first: float, last: float, trainers: Sequence[TrainerTimes]
) -> list[float]:
    """The time of an event between two times, of each trainer that has logged it."""
    times = [each.after(event, first, last) for each in trainers]
    return [at for at in times if at is not None]


def seconds_of(pattern: re.Pattern[str], log: str) -> float | None:
    """The last number of seconds that a log has for a pattern."""
    found = pattern.findall(log)
    return float(found[-1]) if found else None


def median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(statistics.median(known), 3) if known else None
