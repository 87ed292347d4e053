"""The facts of a job in words: rows and lines, as plain text or to be drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from psrt.core.columns import aligned
from psrt.core.quantities import format_bytes
from psrt.status.facts import ClusterFacts, PserverFacts, Unreachable
from psrt.status.rates import earlier, rate, steps
from psrt.status.summaries import JobCuts, cuts_of, errors_of
from psrt.status.waits import waits

_NONE = "-"


@dataclass(frozen=True)
class StatusReport:
    """A job in words: a title, a row for each pserver below `HEAD`, and lines."""

    title: str
    rows: list[tuple[str, ...]]
    summary: list[str]
    waits: list[str]
    problems: list[str]
    errors: list[str]

    HEAD: ClassVar = (
        *("pserver", "progress", "rows", "tables", "rows/s", "steps/s", "calls/s"),
        "durable lag",
    )
    LEFT: ClassVar = (0, 1)
    """The columns of text; the others are of numbers."""

    @classmethod
    def of(cls, now: ClusterFacts, before: ClusterFacts | None = None) -> Self:
        """The report of a job; rates are those since `before`."""
        return cls(
            _title(now),
            list(_pservers(now, before)),
            [*_trainers(now), *_cuts(cuts_of(now))],
            list(map(str, waits(now))),
            list(_problems(now)),
            list(_errors(now)),
        )

    @property
    def found(self) -> list[str]:
        """Waits, problems and errors, or that there are none."""
        lines = [*self.waits, *self.problems, *self.errors]
        return lines or ["nobody waits for long, and no problem is known"]

    def lines(self) -> list[str]:
        """The report as plain text."""
        table = aligned([self.HEAD, *self.rows], left=self.LEFT)
        return [self.title, "", *table, "", *self.summary, "", *self.found]


def _title(now: ClusterFacts) -> str:
    jobs = sorted({each.job or "no job yet" for each in now.reached})
    modes = sorted({each.mode for each in now.reached if each.mode})
    title = ", ".join(jobs) or "no pserver answers"
    return f"job {title}" + (f" ({', '.join(modes)})" if modes else "")


def _pservers(now: ClusterFacts, before: ClusterFacts | None) -> Iterator[tuple[str, ...]]:
    known = earlier(before)
    for each in now.pservers:
        if isinstance(each, Unreachable):
            yield (each.endpoint, "does not answer", *[_NONE] * (len(StatusReport.HEAD) - 2))
        else:
            yield _row(each, known.get(each.endpoint))


def _row(now: PserverFacts, before: PserverFacts | None) -> tuple[str, ...]:
    done = f"round {now.round:,}" if now.round else f"step {now.global_step:,}"
    return (
        now.endpoint,
        done if now.job else "waits for trainers",
        f"{now.rows:,}",
        format_bytes(now.table_bytes),
        _text(rate(now, before, "pserver_rows_applied")),
        _text(steps(now, before)),
        _text(rate(now, before, "pserver_calls")),
        f"{now.durable_lag:,}",
    )


def _text(rate: float | None) -> str:
    if rate is None:
        return _NONE
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"


def _trainers(now: ClusterFacts) -> list[str]:
    """One line: how many trainers are in each state, by the pserver that has seen most of them."""
    if not now.reached:
        return []
    fullest = max(now.reached, key=lambda each: len(each.trainers))
    states = Counter(each.state for each in fullest.trainers)
    counted = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    return [f"trainers: {counted or 'none yet'}"]


def _cuts(cuts: JobCuts | None) -> Iterator[str]:
    """One line about the cuts of a job that makes some."""
    if cuts is None:
        return
    said = []
    if cuts.newest is not None:
        size = cuts.newest.get("bytes")
        age = f", {cuts.newest['age_s']:.0f} s ago" if "age_s" in cuts.newest else ""
        of_size = "" if size is None else f" of {format_bytes(size)}"
        said.append(f"{cuts.newest['number']} is complete{of_size}{age}")
    if cuts.writing is not None:
        said.append(f"{cuts.writing['number']} is being written, {cuts.writing['for_s']:.0f} s")
    if cuts.given_up is not None:
        said.append(f"{cuts.given_up['number']} was given up: {cuts.given_up['why']}")
    yield f"cuts: {'; '.join(said) or 'none yet'}"


def _errors(now: ClusterFacts) -> Iterator[str]:
    """A line for each code of errors that callers got."""
    for each in errors_of(now):
        newest = each.newest
        text = f"{newest.message} {newest.hint}".strip()
        yield f"{each.count} × {newest.code}, last {newest.age_s:.0f} s ago: {text}"


def _problems(now: ClusterFacts) -> Iterator[str]:
    for each in now.pservers:
        if isinstance(each, Unreachable):
            yield f"{each.endpoint}: {each.reason}"
        elif each.problem:
            yield f"{each.endpoint}: {each.problem}"
