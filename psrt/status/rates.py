"""Rates of a pserver between two looks."""

from __future__ import annotations

from psrt.status.facts import ClusterFacts, PserverFacts


def rate(now: PserverFacts, before: PserverFacts | None, counter: str) -> float | None:
    """Counts a second of `counter` since `before`; None without an earlier look at this process."""
    if before is None or before.pid != now.pid:
        return None
    more = now.counters.get(counter, 0.0) - before.counters.get(counter, 0.0)
    return _per_second(more, now, before)


def steps(now: PserverFacts, before: PserverFacts | None) -> float | None:
    """Rounds, or mini-batches of all trainers, a second."""
    if before is None or before.pid != now.pid:
        return None
    # In rounds the step of schedules is that of the round, so both count the same.
    more = max(now.round - before.round, now.global_step - before.global_step)
    return _per_second(more, now, before)


def earlier(before: ClusterFacts | None) -> dict[str, PserverFacts]:
    """The pservers of an earlier look by endpoint."""
    return {each.endpoint: each for each in (before.reached if before else ())}


def _per_second(more: float, now: PserverFacts, before: PserverFacts) -> float:
    return max(0.0, more) / max(now.at_s - before.at_s, 1e-9)
