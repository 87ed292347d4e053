"""The least faults with which a seed still fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

from tests.sim.scenario import Scenario

Smaller: TypeAlias = Callable[[Scenario], Iterator[Scenario]]


def smaller(scenario: Scenario) -> Iterator[Scenario]:
    """Scenarios with one thing less, the largest things first."""
    strikes, links, steps = scenario.strikes, scenario.links, scenario.steps
    last = len(steps) - 1
    if last and all(strike.name != f"trainer {last}" for strike in strikes):
        yield replace(scenario, steps=steps[:-1], joins_s=scenario.joins_s[:-1])
    for index in range(len(strikes)):
        yield replace(scenario, strikes=strikes[:index] + strikes[index + 1 :])
    for index in range(len(links)):
        yield replace(scenario, links=links[:index] + links[index + 1 :])
    cuts = scenario.cuts_s
    for index in range(len(cuts)):
        yield replace(scenario, cuts_s=cuts[:index] + cuts[index + 1 :])
    if scenario.ends_with_cut:
        yield replace(scenario, ends_with_cut=False)
    if scenario.restarts:
        yield replace(scenario, restarts=scenario.restarts - 1)
    for index, count in enumerate(steps):
        if count > 1:
            yield replace(scenario, steps=(*steps[:index], count - 1, *steps[index + 1 :]))
    for index, after_s in enumerate(scenario.joins_s):
        if after_s:
            joins = (*scenario.joins_s[:index], 0.0, *scenario.joins_s[index + 1 :])
            yield replace(scenario, joins_s=joins)


def shrunk(
    scenario: Scenario, fails: Callable[[Scenario], bool], smaller: Smaller = smaller
) -> Scenario:
    """The scenario without what it fails without: faults, restarts, trainers, cuts …

    Greedy, until no single removal keeps the failure.
    """
    while (less := next(filter(fails, smaller(scenario)), None)) is not None:
        scenario = less
    return scenario
