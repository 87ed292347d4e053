"""Small histories: jobs of a few steps, with few faults that strike close together.

Most defects need few steps, and two or three faults within milliseconds. Small histories take a
fraction of the time of others, so a machine tries many more orders of events. Long silences, full
queues of pushes, and most chains of cuts are left to histories that are not small.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from tests.sim.attempt import Attempt, Repeated
from tests.sim.network import LinkFault
from tests.sim.resizing import Change
from tests.sim.scenario import ProcessFault, Scenario, Strike

MOST_STEPS, MOST_DURABLE_STEPS, MOST_PAIRED_STEPS, MOST_RESIZED_STEPS = 3, 3, 5, 4
MOST_CHAIN_STEPS = 12
"""With several cuts one after the other, in some small histories."""
MOST_DEALT_STEPS = 6
"""Of all trainers of a job with several attempts."""
COPIED_S = 0.04
"""About the time until a backup has a whole copy: before, nothing is promised."""
MOST_PSERVERS, MOST_TRAINERS = 2, 2
"""In most small histories; a third trainer is in some."""
MOST_LINK_FAULTS, MOST_FAULTS = 3, 2
"""Of frames; and moments at which processes are struck, perhaps several at once."""
MOST_FRAMES = 80
JOIN_S, STEP_S = 0.02, 0.012
"""About the time until a trainer has joined, and the time of a step."""
CHANGED_S = 0.12
"""About the time until a job goes on with another number of trainers, and survives kills again."""
NEAR_S = 0.03
"""Faults that are close together lie within so many seconds."""
LONGEST_FAULT_S = 0.2
DELTA_EVERY_S = 0.05


def small(scenario: Scenario, most_steps: int = 0, begin_s: float = 0.0) -> Scenario:
    """The scenario with few steps; its faults are fewer, shorter and closer together.

    None strikes before `begin_s`, nor before there can be a backup.
    """
    draw = random.Random(f"small {scenario.seed} {scenario.mode}")
    is_chain = scenario.cuts_in_a_row > 1 and draw.random() < 0.2
    most = most_steps or (MOST_CHAIN_STEPS if is_chain else _most_steps(scenario))
    least = most if is_chain else 1
    trainers = len(scenario.steps) if draw.random() < 0.2 else MOST_TRAINERS
    counts = scenario.steps[:trainers]
    steps = tuple(min(count, draw.randint(least, most)) for count in counts)
    gone = [f"trainer {number}" for number in range(len(steps), len(scenario.steps))]
    strikes = [strike for strike in scenario.strikes if strike.name not in gone]
    begin_s = COPIED_S if scenario.has_backups else begin_s
    moment = moments(draw, JOIN_S + STEP_S * max(steps), begin_s)
    return replace(
        scenario,
        steps=steps,
        joins_s=tuple(round(after_s * 0.1, 3) for after_s in scenario.joins_s[:trainers]),
        links=_near(draw, scenario.links),
        strikes=_struck(draw, strikes, moment),
        cuts_s=tuple(sorted(map(moment, scenario.cuts_s))),
        ends_with_cut=scenario.ends_with_cut and draw.random() < 0.4,
        cuts_in_a_row=scenario.cuts_in_a_row if is_chain else min(scenario.cuts_in_a_row, 2),
        failing_syncs=tuple(sorted({1 + each % 40 for each in scenario.failing_syncs})),
        delta_every_s=DELTA_EVERY_S,
    )


def _most_steps(scenario: Scenario) -> int:
    if scenario.has_backups:
        return MOST_PAIRED_STEPS
    return MOST_DURABLE_STEPS if scenario.is_durable else MOST_STEPS


def small_resize(
    scenario: Scenario, changes: Sequence[Change]
) -> tuple[Scenario, tuple[Change, ...]]:
    """A job whose number of trainers changes, made small."""
    draw = random.Random(f"small changes {scenario.seed} {scenario.mode}")
    sooner = [replace(each, after_s=round(draw.uniform(0.0, 0.06), 4)) for each in changes]
    begin_s = draw.choice([0.0, CHANGED_S])
    return small(scenario, MOST_RESIZED_STEPS, begin_s), tuple(sooner[:2])


def small_attempts(scenario: Scenario) -> Scenario:
    """A job with several attempts, made small: one of them or two, and the last."""
    assert isinstance(scenario, Repeated)
    draw = random.Random(f"small {scenario.seed} {scenario.mode}")
    steps = min(scenario.steps[0], draw.randint(2, MOST_DEALT_STEPS))
    first = scenario.attempts[: draw.choice([1, 1, 1, 1, 2])][: len(scenario.attempts) - 1]
    attempts = (*first, scenario.attempts[-1])
    begin_s = COPIED_S if scenario.has_backups else 0.0
    return replace(
        scenario,
        steps=(steps,),
        links=_near(draw, scenario.links),
        attempts=tuple(_small_attempt(draw, each, steps, begin_s) for each in attempts),
        delta_every_s=DELTA_EVERY_S,
    )


def _small_attempt(draw: random.Random, attempt: Attempt, steps: int, begin_s: float) -> Attempt:
    trainers = MOST_TRAINERS if draw.random() < 0.8 else len(attempt.joins_s)
    joins_s = attempt.joins_s[:trainers]
    trains_s = JOIN_S + STEP_S * steps / len(joins_s)
    moment = moments(draw, trains_s, begin_s)
    others = [each for each in attempt.strikes if each.name != f"trainer {len(joins_s)}"]
    strikes = _struck(draw, others, moment)
    behind_s = max(
        (each.at_s + each.for_s * draw.choice([0.3, 1.1]) for each in strikes), default=0
    )
    return replace(
        attempt,
        pservers=min(attempt.pservers, MOST_PSERVERS),
        joins_s=tuple(_late(draw, after_s, behind_s) for after_s in joins_s),
        cuts_s=tuple(sorted(map(moment, attempt.cuts_s[:2]))),
        strikes=strikes,
        ends_s=round(draw.uniform(0.04, 0.06 + 1.5 * trains_s), 4) if attempt.ends_s else 0.0,
    )


def _late(draw: random.Random, after_s: float, behind_s: float) -> float:
    """The time at which a late trainer joins: soon, or close behind a strike or restart."""
    is_behind = behind_s and draw.random() < 0.6
    soon_s = behind_s + draw.uniform(0.0, 2 * NEAR_S) if is_behind else after_s * 0.15
    return round(soon_s, 3) if after_s else 0.0


def moments(draw: random.Random, trains_s: float, begin_s: float = 0.0) -> Callable[[float], float]:
    """Moments in a job of `trains_s` seconds, in place of others.

    Most are close together, equal ones are given for equal ones, and none is before `begin_s`.
    """
    first_s, found = begin_s + draw.uniform(0.0, 1.3 * trains_s), dict[float, float]()

    def moment(old_s: float) -> float:
        if old_s not in found:
            is_near = draw.random() < 0.75
            far_s = begin_s + draw.uniform(0.0, 2 * trains_s)
            found[old_s] = round(first_s + draw.uniform(0.0, NEAR_S) if is_near else far_s, 4)
        return found[old_s]

    return moment


def _near(
    draw: random.Random, links: Iterable[tuple[int, LinkFault]]
) -> tuple[tuple[int, LinkFault], ...]:
    """A few of the faults, at frames that follow each other closely."""
    faults = [fault for _, fault in links][:MOST_LINK_FAULTS]
    number = draw.randrange(MOST_FRAMES)
    found = []
    for fault in faults:
        found.append((number, fault))
        number += draw.randint(1, 12)
    return tuple(found)


def _struck(
    draw: random.Random, strikes: Iterable[Strike], moment: Callable[[float], float]
) -> tuple[Strike, ...]:
    """The strikes of the first moments, at other ones, and shorter."""
    most = draw.choice([1, MOST_FAULTS])
    at_s = list(dict.fromkeys(strike.at_s for strike in strikes))[:most]
    return tuple(
        replace(strike, at_s=moment(strike.at_s), for_s=_shorter(draw, strike))
        for strike in strikes
        if strike.at_s in at_s
    )


def _shorter(draw: random.Random, strike: Strike) -> float:
    """Seconds of a pause, or until a restart; processes that stay dead do."""
    if strike.fault is ProcessFault.INTERRUPT or not strike.for_s:
        return strike.for_s
    return min(strike.for_s, round(draw.uniform(0.02, LONGEST_FAULT_S), 2))
