"""Waits of a job, from the facts of all pservers: one process for another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from psrt.status.facts import ClockFacts, ClusterFacts, PserverFacts, TrainerFacts

RUNNING, UNSEEN = "running", "unseen"


@dataclass(frozen=True)
class Wait:
    """`waiting` cannot go on before `awaited` do something; `since_s` is how long they have not."""

    where: str
    waiting: str
    awaited: str
    since_s: float | None = None

    def __str__(self) -> str:
        since = "" if self.since_s is None else f", silent for {self.since_s:.1f} s"
        return f"{self.where}: {self.waiting} for {self.awaited}{since}"


def waits(facts: ClusterFacts) -> list[Wait]:
    """All waits of a job, in the order of its pservers."""
    return [wait for pserver in facts.reached for wait in _waits_at(pserver)]


def _waits_at(pserver: PserverFacts) -> Iterator[Wait]:
    yield from _start(pserver)
    yield from _round(pserver)
    for clock in pserver.clocks:
        yield from _clock(pserver, clock)
    if pserver.recovers_from:
        awaited = _named(pserver.recovers_from)
        yield Wait(pserver.endpoint, "the recovery waits", f"pushes that {awaited} sends again")
    if pserver.is_loading:
        yield Wait(pserver.endpoint, "calls wait", "tables that are being loaded")


def _start(pserver: PserverFacts) -> Iterator[Wait]:
    """A job that has begun waits for trainers that nobody has seen."""
    unseen = [each.trainer for each in pserver.trainers if each.state == UNSEEN]
    if unseen:
        yield Wait(pserver.endpoint, "the job waits", f"{_named(unseen)} to start")


def _round(pserver: PserverFacts) -> Iterator[Wait]:
    arrived = set(pserver.in_round)
    absent = [t for t in pserver.trainers if t.state == RUNNING and t.trainer not in arrived]
    if arrived and absent:
        waiting = f"{_named(sorted(arrived))} in round {pserver.round} waits"
        names = [each.trainer for each in absent]
        yield Wait(pserver.endpoint, waiting, _named(names), _longest(absent))


def _clock(pserver: PserverFacts, clock: ClockFacts) -> Iterator[Wait]:
    running = [each for each in pserver.trainers if each.state == RUNNING]
    if not clock.waiting or not running:
        return
    reached = {each.trainer: clock.reached[each.trainer] for each in running}
    least = min(reached.values())
    behind = [t for t in running if reached[t.trainer] == least and t.trainer not in clock.waiting]
    if behind:
        waiting = f"{_named(clock.waiting)} on clock {clock.name} waits"
        names = [each.trainer for each in behind]
        yield Wait(pserver.endpoint, waiting, f"{_named(names)} at {least}", _longest(behind))


def _named(trainers: tuple[int, ...] | list[int]) -> str:
    """`trainer 3`, or `trainers 0, 1, 2 and 40 more`."""
    shown, rest = list(map(str, trainers[:8])), len(trainers) - 8
    more = f" and {rest} more" if rest > 0 else ""
    return f"trainer{'s' * (len(trainers) > 1)} {', '.join(shown)}{more}"


def _longest(trainers: list[TrainerFacts]) -> float | None:
    return max((each.silent_s for each in trainers if each.silent_s is not None), default=None)
