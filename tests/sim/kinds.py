"""Kinds of histories: each draws a scenario from a seed, runs it, and shrinks it if it fails."""

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

Runner = Callable[[Scenario], Verdict]


@dataclass(frozen=True)
class Kind:
    """`draw` gives the scenario of a seed and mode, and what runs it; `percent` of all histories
    of `--all` are of this kind."""

    percent: int
    modes: Sequence[str]
    draw: Callable[[int, str | None], tuple[Scenario, Runner]]
    smaller: Smaller = smaller

    def run(self, seed: int, mode: str | None) -> Verdict:
        scenario, runner = self.draw(seed, mode)
        return runner(scenario)

    def shrunk(self, seed: int, mode: str | None) -> Verdict:
        """The history of a seed that fails, with the fewest faults with which it does."""
        scenario, runner = self.draw(seed, mode)

        def fails(each: Scenario) -> bool:
            return bool(runner(each).violation)

        return runner(shrunk(scenario, fails, self.smaller))


def _plain(draw: Callable[[int, str | None], Scenario]) -> Callable[..., tuple[Scenario, Runner]]:
    return lambda seed, mode: (draw(seed, mode), run)


def _resizes(seed: int, mode: str | None) -> tuple[Scenario, Runner]:
    """Changes of jobs that are durable in half of all histories; their pservers may be killed."""
    mode, draw = mode or random.Random(seed).choice(PAIRED_MODES), random.Random(f"durable {seed}")
    if draw.random() < 0.5:
        scenario, changes = drawn_changes(seed, mode)
    else:
        has_deltas, are_killed = draw.random() < 0.5, draw.random() < 0.7
        scenario, changes = durable_changes(seed, mode, has_deltas, are_killed)
    return scenario, partial(run_changes, changes=changes)


def _attempts(seed: int, mode: str | None) -> tuple[Scenario, Runner]:
    return attempt.repeated(seed, mode), run_attempts


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


def kind_and_mode_of(seed: int) -> tuple[str, str]:
    """Kind and mode of a seed among all, kinds by their shares and modes in equal ones."""
    draw = random.Random(f"kind {seed}")
    (name,) = draw.choices(list(KINDS), [kind.percent for kind in KINDS.values()])
    return name, draw.choice(KINDS[name].modes)
