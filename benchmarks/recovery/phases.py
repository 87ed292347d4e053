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

from benchmarks.measuring.harness import Figures

KERNELS = re.compile(r"kernels ready in ([\d.]+) s")
TABLES = re.compile(r"restored \d+ tables in ([\d.]+) s")


@dataclass(frozen=True)
class KilledPserver:
    """One kill: its time, that of the new process's start, and of its ready file."""

    pserver: int
    killed: float
    started: float
    ready: float
    log: str


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


def figures(kills: Sequence[KilledPserver], trainers: Sequence[TrainerTimes]) -> Figures:
    """Gaps of all trainers after all kills, gaps without a kill, and medians of the phases."""
    ends = [each.killed for each in kills[1:]] + [float("inf")]
    gaps = [
        trainer.longest_gap(kill.killed, end)
        for kill, end in zip(kills, ends, strict=True)
        for trainer in trainers
    ]
    quiet = [each.longest_before(kills[0].killed) for each in trainers]
    parts = [phases(kill, end, trainers) for kill, end in zip(kills, ends, strict=True)]
    return {
        "gap_median_s": round(statistics.median(gaps), 3),
        "gap_worst_s": round(max(gaps), 3),
        "gaps_s": [round(each, 3) for each in gaps],
        "gap_without_kill_s": round(max(quiet), 3),
        "wholes_s": [round(part["whole"] or -1.0, 3) for part in parts],
        "phases_median_s": {name: median([part[name] for part in parts]) for name in parts[0]},
    }


def phases(
    kill: KilledPserver, end: float, trainers: Sequence[TrainerTimes]
) -> dict[str, float | None]:
    """Seconds of each part of one recovery; None where nothing was logged."""
    kernels, tables = seconds_of(KERNELS, kill.log), seconds_of(TABLES, kill.log)
    whole = kill.ready - kill.started
    met = [at for each in trainers if (at := each.after("met", kill.killed, end)) is not None]
    resent = [at for each in trainers if (at := each.after("resent", kill.killed, end)) is not None]
    return {
        "noticed": kill.started - kill.killed,
        "process": whole - (kernels or 0.0),
        "kernels": kernels,
        "load": tables,
        "met": max(met) - kill.ready if met else None,
        "resend": max(resent) - max(met) if met and resent else None,
        "whole": max(resent) - kill.killed if resent else None,
    }


def seconds_of(pattern: re.Pattern[str], log: str) -> float | None:
    """The last number of seconds that a log has for a pattern."""
    found = pattern.findall(log)
    return float(found[-1]) if found else None


def median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(statistics.median(known), 3) if known else None
