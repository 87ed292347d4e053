"""Jobs that are started several times, as data: each attempt begins with a cut of those before."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.sim.network import LinkFault
from tests.sim.scenario import CARRIERS, MODES, PAIRED_MODES, ProcessFault, Scenario, Strike

ANEW, LATEST, EARLIER = "anew", "latest", "earlier"
"""Beginnings of an attempt: nothing, the newest cut if there is one, or the one before that."""
SURVIVED = (LinkFault.DOUBLE, LinkFault.CUT, LinkFault.LATE)
MOST_FRAMES = 600
LEAST_STEPS, MOST_STEPS, MOST_GEO_STEPS = 12, 60, 24


@dataclass(frozen=True)
class Attempt:
    """One start of a job: its numbers of processes, and its end.

    All processes are killed after `ends_s`, 0 = they end by themselves; with `loses_power` the disk
    forgets what was not synced. Somebody asks for a cut at each of `cuts_s`. `keeps` is the number
    of cuts that are kept.
    """

    mode: str
    begins: str
    pservers: int
    joins_s: tuple[float, ...]
    cuts_s: tuple[float, ...] = ()
    strikes: tuple[Strike, ...] = ()
    ends_s: float = 0.0
    loses_power: bool = False
    keeps: int = 8

    def __str__(self) -> str:
        power = ", and the disk forgets" * self.loses_power
        ends = f"all are killed after {self.ends_s:.3f} s{power}" if self.ends_s else "ends itself"
        lines = [
            f"  attempt in {self.mode}, begins with {self.begins}: {self.pservers} pservers, "
            f"trainers join after {', '.join(f'{s:.2f}' for s in self.joins_s)} s, "
            f"cuts after {', '.join(f'{s:.3f}' for s in self.cuts_s)} s, {self.keeps} kept, {ends}"
        ]
        return "\n".join([*lines, *(f"    {strike}" for strike in self.strikes)])


@dataclass(frozen=True)
class Repeated(Scenario):
    """A job with several attempts, the last of which must complete it.

    `steps` are dealt to the trainers of each attempt; the other fields count for all of them.
    """

    attempts: tuple[Attempt, ...] = ()

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *map(str, self.attempts)])


def repeated(seed: int, mode: str | None = None) -> Repeated:
    """The attempts of a seed: some that are killed, and a last one that must complete."""
    draw = random.Random(f"repeated {seed} {mode}")
    mode = mode or draw.choice(list(MODES))
    is_geo = mode.startswith("geo")
    durability = draw.choice(["", "", "cut", "delta", "cut" if is_geo else "replica"])
    most = MOST_GEO_STEPS if is_geo else MOST_STEPS
    links = {draw.randrange(MOST_FRAMES): draw.choice(SURVIVED) for _ in range(draw.choice([0, 4]))}
    late = [number for number, fault in links.items() if fault is LinkFault.LATE]
    attempts = [_attempt(draw, mode, durability, is_first=not n) for n in range(draw.randint(1, 3))]
    last = _attempt(draw, mode, durability, is_first=False)
    return Repeated(
        seed,
        mode,
        draw.choice(CARRIERS),
        steps=(draw.randint(LEAST_STEPS, most),),
        joins_s=(0.0,),
        links=tuple(sorted((n, fault) for n, fault in links.items() if n not in late[1:])),
        is_durable=bool(durability),
        has_deltas=durability == "delta",
        has_backups=durability == "replica",
        ends_with_cut=draw.random() < 0.3,
        attempts=(*attempts, _last(last, durability, f"last {seed} {mode}")),
    )


def _last(attempt: Attempt, durability: str, seed: str) -> Attempt:
    """The last attempt: it completes, also with backups, although a pserver is killed then and a
    trainer joins about when its backup takes over."""
    last, draw = replace(attempt, ends_s=0.0, strikes=(), loses_power=False), random.Random(seed)
    if durability != "replica" or draw.random() < 0.2:
        return last
    at_s, for_s = round(draw.uniform(0.05, 0.3), 4), round(draw.uniform(0.05, 0.6), 2)
    killed, joins_s = f"pserver {draw.choice([0, 0, 1])}", last.joins_s
    if len(joins_s) > 1:
        joins_s = (*joins_s[:-1], round(at_s + draw.uniform(0.0, 0.8), 3))
    kill = Strike(at_s, ProcessFault.KILL, killed, for_s)
    return replace(last, strikes=(kill,), joins_s=joins_s)


def _attempt(draw: random.Random, mode: str, durability: str, is_first: bool) -> Attempt:
    """An attempt, in which one trainer joins late now and then."""
    trainers = draw.randint(1, 3)
    joins_s = [0.0] * trainers
    if trainers > 1 and draw.random() < 0.7:
        joins_s[draw.randrange(trainers)] = round(draw.uniform(0.1, 0.8), 3)
    least = 2 if durability == "replica" else 1
    begins = [LATEST] * 5 + [EARLIER] * 3 + [ANEW]
    others = PAIRED_MODES if mode in PAIRED_MODES else [mode]
    return Attempt(
        mode if draw.random() < 0.7 else draw.choice(others),
        ANEW if is_first else draw.choice(begins),
        draw.randint(least, 3),
        tuple(joins_s),
        cuts_s=tuple(
            sorted(round(draw.uniform(0.02, 0.4), 4) for _ in range(draw.choice([1, 2, 4])))
        ),
        strikes=_strikes(draw, mode, durability, trainers),
        ends_s=round(draw.uniform(0.05, 1.2), 4) if draw.random() < 0.8 else 0.0,
        loses_power=draw.random() < 0.3,
        keeps=draw.choice([1, 2, 8]),
    )


def _strikes(draw: random.Random, mode: str, durability: str, trainers: int) -> tuple[Strike, ...]:
    """Faults of single processes that a job survives: a pserver of a durable one is started again,
    and otherwise a trainer."""
    found = []
    for _ in range(draw.choice([0, 1, 1, 2])):
        at_s = round(draw.choice([draw.uniform(0.02, 0.15), draw.uniform(0.0, 0.8)]), 4)
        for_s = round(draw.uniform(0.05, 0.6), 2)
        pserver, trainer = f"pserver {draw.randrange(2)}", f"trainer {draw.randrange(trainers)}"
        if durability:
            found.append(Strike(at_s, ProcessFault.KILL, pserver, for_s))
        elif draw.random() < 0.5:
            found.append(Strike(at_s, ProcessFault.PAUSE, draw.choice([pserver, trainer]), for_s))
        else:
            found.append(Strike(at_s, ProcessFault.KILL, trainer, for_s))
    return tuple(found)


def smaller(scenario: Scenario) -> Iterator[Scenario]:
    """Scenarios with one thing less, the largest things first."""
    assert isinstance(scenario, Repeated)
    attempts = scenario.attempts
    for index in range(len(attempts) - 1):
        yield replace(scenario, attempts=(*attempts[:index], *attempts[index + 1 :]))
    for index, attempt in enumerate(attempts):
        for less in _smaller_attempts(attempt):
            yield replace(scenario, attempts=(*attempts[:index], less, *attempts[index + 1 :]))
    for index in range(len(scenario.links)):
        yield replace(scenario, links=scenario.links[:index] + scenario.links[index + 1 :])
    if scenario.ends_with_cut:
        yield replace(scenario, ends_with_cut=False)
    if scenario.steps[0] > 1:
        yield replace(scenario, steps=(scenario.steps[0] - 1,))


def _smaller_attempts(attempt: Attempt) -> Iterator[Attempt]:
    strikes, cuts, joins = attempt.strikes, attempt.cuts_s, attempt.joins_s
    for index in range(len(strikes)):
        yield replace(attempt, strikes=strikes[:index] + strikes[index + 1 :])
    for index in range(len(cuts)):
        yield replace(attempt, cuts_s=cuts[:index] + cuts[index + 1 :])
    if attempt.loses_power:
        yield replace(attempt, loses_power=False)
    if len(joins) > 1 and all(strike.name != f"trainer {len(joins) - 1}" for strike in strikes):
        yield replace(attempt, joins_s=joins[:-1])
    for index, after_s in enumerate(joins):
        if after_s:
            yield replace(attempt, joins_s=(*joins[:index], 0.0, *joins[index + 1 :]))
