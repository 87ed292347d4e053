"""Facts of a job as the page shows them: plain data, numbers in base units (s, bytes, 1/s).

The page formats and draws; its contents are decided here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from psrt.status.facts import ClusterFacts, PserverFacts, Unreachable
from psrt.status.page.table_view import tables_of
from psrt.status.page.trainer_view import trainers_of
from psrt.status.page.verdict import merged_waits, verdict_of
from psrt.status.rates import earlier, rate, steps
from psrt.status.summaries import cuts_of, errors_of

MOST_TRAINERS = 256
MOST_TABLES = 64
DOCS = "docs/reference/errors.md"


def view_of(now: ClusterFacts, before: ClusterFacts | None, at_s: float) -> dict[str, Any]:
    """Everything the page shows; rates are those since `before`. `at_s` is in s since 1970."""
    waits = merged_waits(now)
    pservers = list(_pservers(now, before))
    return {
        "at_s": round(at_s, 3),
        "job": ", ".join(sorted({each.job for each in now.reached if each.job})),
        "mode": ", ".join(sorted({each.mode for each in now.reached if each.mode})),
        "verdict": dataclasses.asdict(verdict_of(now, waits)),
        "totals": _totals(pservers),
        "pservers": pservers,
        "trainers": (trainers := trainers_of(now, before, waits))[:MOST_TRAINERS],
        "more_trainers": max(0, len(trainers) - MOST_TRAINERS),
        "waits": list(map(dataclasses.asdict, waits)),
        "tables": (tables := tables_of(now))[:MOST_TABLES],
        "more_tables": max(0, len(tables) - MOST_TABLES),
        "cuts": (cuts := cuts_of(now)) and dataclasses.asdict(cuts),
        "errors": list(_errors(now)),
    }


def _pservers(now: ClusterFacts, before: ClusterFacts | None) -> Iterator[dict[str, Any]]:
    known = earlier(before)
    for each in now.pservers:
        if isinstance(each, Unreachable):
            yield {"endpoint": each.endpoint, "reached": False, "problem": each.reason}
        else:
            yield _pserver(each, known.get(each.endpoint))


def _pserver(now: PserverFacts, before: PserverFacts | None) -> dict[str, Any]:
    return {
        "endpoint": now.endpoint,
        "reached": True,
        "problem": now.problem,
        "progress": _progress(now),
        "steps_per_s": steps(now, before),
        "pushed_rows_per_s": rate(now, before, "pserver_rows_applied"),
        "pulled_rows_per_s": rate(now, before, "pserver_rows_read"),
        "calls_per_s": rate(now, before, "pserver_calls"),
        "busy": _busy(now, before),
        "rows": now.rows,
        "table_bytes": now.table_bytes,
        "memory_bytes": now.memory_bytes,
        "memory_limit_bytes": now.memory_limit_bytes,
        "durable_lag": now.durable_lag,
        "is_durable": now.is_durable,
        "loading": now.is_loading,
        "version": now.version,
    }


def _progress(now: PserverFacts) -> str:
    if not now.job:
        return "waits for trainers"
    return f"round {now.round:,}" if now.round else f"step {now.global_step:,}"


def _busy(now: PserverFacts, before: PserverFacts | None) -> float | None:
    """The part of the time in which gradients were applied, by one thread or several."""
    return rate(now, before, "pserver_apply_s")


def _totals(pservers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Figures of the whole job; steps are those of the pserver that is furthest behind."""
    reached = [each for each in pservers if each["reached"]]
    rates = [each["steps_per_s"] for each in reached if each["steps_per_s"] is not None]
    summed = ("rows", "table_bytes", "pushed_rows_per_s", "pulled_rows_per_s", "calls_per_s")
    return {
        "steps_per_s": min(rates, default=None),
        **{name: _sum([each[name] for each in reached]) for name in summed},
    }


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _errors(now: ClusterFacts) -> Iterator[dict[str, Any]]:
    for each in errors_of(now):
        newest = each.newest
        yield {
            "code": newest.code,
            "count": each.count,
            "summary": each.summary,
            "message": newest.message,
            "hint": newest.hint,
            "trainer": newest.trainer,
            "age_s": newest.age_s,
            "endpoints": each.endpoints,
            "docs": f"{DOCS}#{newest.code.lower()}",
        }
