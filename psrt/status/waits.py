"""Waits of a job, from the facts of all pservers: one process for another, and since when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from psrt.status.facts import ClockFacts, ClusterFacts, PserverFacts, TrainerFacts

RUNNING, UNSEEN = "running", "unseen"


@dataclass(frozen=True)
class Wait:
    """`who` cannot go on before `awaited` do something, at the pserver `where`.

    `on` is the round, clock or cut. `waited_s` is how long the first of `who` has waited,
    `silent_s` how long those awaited have not called; None if it is not known. `waiting` and
    `missing` are the trainers among both.
    """

    where: str
    who: str
    awaited: str
    on: str = ""
    waited_s: float | None = None
    silent_s: float | None = None
    waiting: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """The wait in words."""
        on = f" {self.on}" if self.on else ""
        is_many = len(self.waiting) > 1 or self.who == "calls"
        verb = "wait" if is_many else "waits"
        if self.waited_s is not None:
            verb = f"{'have' if is_many else 'has'} waited {self.waited_s:.1f} s"
        return f"{self.who}{on} {verb} for {self.awaited}"

    def __str__(self) -> str:
        silent = "" if self.silent_s is None else f", silent for {self.silent_s:.1f} s"
        return f"{self.where}: {self.text}{silent}"


def waits(facts: ClusterFacts) -> list[Wait]:
    """All waits of a job, in the order of its pservers."""
    return [wait for pserver in facts.reached for wait in _waits_at(pserver)]


def _waits_at(pserver: PserverFacts) -> Iterator[Wait]:
    yield from _start(pserver)
    yield from _round(pserver)
    for clock in pserver.clocks:
        yield from _clock(pserver, clock)
    yield from _cut(pserver)
    if pserver.recovers_from:
        awaited = f"pushes that {named(pserver.recovers_from)} sends again"
        missing = tuple(pserver.recovers_from)
        yield Wait(pserver.endpoint, "the recovery", awaited, missing=missing)
    if pserver.is_loading:
        yield Wait(pserver.endpoint, "calls", "tables that are being loaded")


def _start(pserver: PserverFacts) -> Iterator[Wait]:
    """A job that has begun waits for trainers that nobody has seen."""
    unseen = tuple(each.trainer for each in pserver.trainers if each.state == UNSEEN)
    if unseen:
        yield Wait(pserver.endpoint, "the job", f"{named(unseen)} to start", missing=unseen)


def _round(pserver: PserverFacts) -> Iterator[Wait]:
    arrived = set(pserver.in_round)
    absent = [t for t in pserver.trainers if t.state == RUNNING and t.trainer not in arrived]
    if arrived and absent:
        on = f"in round {pserver.round:,}"
        yield _of_trainers(pserver, sorted(arrived), absent, on, pserver.waiting_s)


def _clock(pserver: PserverFacts, clock: ClockFacts) -> Iterator[Wait]:
    running = [each for each in pserver.trainers if each.state == RUNNING]
    if not clock.waiting or not running:
        return
    reached = {each.trainer: clock.reached[each.trainer] for each in running}
    least = min(reached.values())
    behind = [t for t in running if reached[t.trainer] == least and t.trainer not in clock.waiting]
    if behind:
        at = f" at {least}"
        on = f"on clock {clock.name}"
        yield _of_trainers(pserver, clock.waiting, behind, on, clock.waiting_s, at)


def _cut(pserver: PserverFacts) -> Iterator[Wait]:
    cut = pserver.open_cut
    if cut is None or not cut.missing:
        return
    absent = [each for each in pserver.trainers if each.trainer in cut.missing]
    since = dict.fromkeys(cut.waiting, cut.for_s)
    yield _of_trainers(pserver, cut.waiting, absent, f"at cut {cut.number}", since)


def _of_trainers(
    pserver: PserverFacts,
    waiting: Sequence[int],
    absent: Sequence[TrainerFacts],
    on: str,
    waiting_s: Mapping[int, float],
    at: str = "",
) -> Wait:
    """The wait of some trainers for others."""
    missing = tuple(each.trainer for each in absent)
    silent_s = _longest(each.silent_s for each in absent)
    waited_s = _longest(waiting_s.get(trainer) for trainer in waiting)
    who, awaited = named(waiting), f"{named(missing)}{at}"
    return Wait(pserver.endpoint, who, awaited, on, waited_s, silent_s, tuple(waiting), missing)


def named(trainers: Sequence[int]) -> str:
    """`trainer 3`, or `trainers 0, 1, 2 and 40 more`."""
    shown, rest = list(map(str, trainers[:8])), len(trainers) - 8
    more = f" and {rest} more" if rest > 0 else ""
    return f"trainer{'s' * (len(trainers) > 1)} {', '.join(shown)}{more}"


def _longest(seconds: Iterable[float | None]) -> float | None:
    return max((each for each in seconds if each is not None), default=None)
