"""Kinds of histories: each draws a scenario from a seed, runs it, and shrinks it if it fails.

A history may be small, see `small`; one of the same seed that is not has other faults.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tests.sim import attempt
from tests.sim.attempts import run_attempts
from tests.sim.history import Verdict, run
from tests.sim.resizing import drawn_changes, durable_changes, run_changes
from tests.sim.scenario import (
    ALL_MODES,
    ALL_PAIRED_MODES,
    PAIRED_MODES,
    Scenario,
    drawn,
    durable,
    early,
    interrupted,
    with_backups,
    with_deltas,
)
from tests.sim.shrinking import Smaller, shrunk, smaller
from tests.sim.small import small, small_attempts, small_resize

Runner = Callable[[Scenario], Verdict]


@dataclass(frozen=True)
class Kind:
    """`draw` gives the scenario of a seed and mode, small or not, and what runs it; `percent` of
    all histories of `--all` are of this kind."""

    percent: int
    modes: Sequence[str]
    draw: Callable[[int, str | None, bool], tuple[Scenario, Runner]]
    smaller: Smaller = smaller

    def run(self, seed: int, mode: str | None, is_small: bool = False) -> Verdict:
        scenario, runner = self.draw(seed, mode, is_small)
        return runner(scenario)

    def shrunk(self, seed: int, mode: str | None, is_small: bool = False) -> Verdict:
        """The history of a seed that fails, with the fewest faults with which it does."""
        scenario, runner = self.draw(seed, mode, is_small)

        def fails(each: Scenario) -> bool:
            return bool(runner(each).violation)

        return runner(shrunk(scenario, fails, self.smaller))


def _plain(draw: Callable[[int, str | None], Scenario]) -> Callable[..., tuple[Scenario, Runner]]:
    def drawn(seed: int, mode: str | None, is_small: bool) -> tuple[Scenario, Runner]:
        scenario = draw(seed, mode)
        return small(scenario) if is_small else scenario, run

    return drawn


def _resizes(seed: int, mode: str | None, is_small: bool) -> tuple[Scenario, Runner]:
    """Changes of jobs that are durable in half of all histories; their pservers may be killed."""
    mode, draw = mode or random.Random(seed).choice(PAIRED_MODES), random.Random(f"durable {seed}")
    if draw.random() < 0.5:
        scenario, changes = drawn_changes(seed, mode)
    else:
        has_deltas, are_killed = draw.random() < 0.5, draw.random() < 0.7
        scenario, changes = durable_changes(seed, mode, has_deltas, are_killed)
    if is_small:
        scenario, changes = small_resize(scenario, changes)
    return scenario, partial(run_changes, changes=changes)


def _attempts(seed: int, mode: str | None, is_small: bool) -> tuple[Scenario, Runner]:
    scenario = attempt.repeated(seed, mode)
    return small_attempts(scenario) if is_small else scenario, run_attempts


KINDS = {
    "plain": Kind(20, list(ALL_MODES), _plain(drawn)),
    "durable": Kind(15, list(ALL_MODES), _plain(durable)),
    "early": Kind(10, list(ALL_MODES), _plain(early)),
    "deltas": Kind(15, list(ALL_MODES), _plain(with_deltas)),
    "backups": Kind(10, ALL_PAIRED_MODES, _plain(with_backups)),
    "resizes": Kind(10, ALL_PAIRED_MODES, _resizes),
    "interrupted": Kind(5, list(ALL_MODES), _plain(interrupted)),
    "attempts": Kind(15, list(ALL_MODES), _attempts, attempt.smaller),
}


SMALL_PERCENT = 95
"""Share of small histories among those of `--all`."""


def drawn_of(seed: int) -> tuple[str, str, bool]:
    """Kind and mode of a seed among all, and whether its history is small.

    Kinds come by their shares, modes in equal ones.
    """
    draw = random.Random(f"kind {seed}")
    (name,) = draw.choices(list(KINDS), [kind.percent for kind in KINDS.values()])
    return name, draw.choice(KINDS[name].modes), draw.random() * 100 < SMALL_PERCENT
