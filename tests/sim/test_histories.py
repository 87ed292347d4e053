"""Some histories of each mode keep every promise; `python -m tests.sim` runs any number."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.sim.history import run
from tests.sim.scenario import (
    MODES,
    PAIRED_MODES,
    Scenario,
    drawn,
    durable,
    early,
    interrupted,
    with_backups,
    with_deltas,
)

LEAST, MOST = 3, 8
"""Histories of a mode: more than the least only until one shows what the test is about."""


def keeps_promises(
    draw: Callable[[int, str], Scenario], mode: str, shows: Callable[[str], bool]
) -> bool:
    """Run histories, none of which may break a promise; True if a line of one `shows` it."""
    seen = False
    for seed in range(MOST):
        verdict = run(draw(seed, mode))
        assert not verdict.violation, verdict
        seen = seen or any(map(shows, verdict.trace))
        if seen and seed + 1 >= LEAST:
            break
    return seen


def recovers(line: str) -> bool:
    return "pushes again" in line


@pytest.mark.parametrize("mode", MODES)
def test_no_history_breaks_a_promise(mode: str) -> None:
    assert keeps_promises(drawn, mode, lambda line: "completed" in line)


@pytest.mark.parametrize("mode", MODES)
def test_an_interrupted_trainer_has_not_completed(mode: str) -> None:
    assert keeps_promises(interrupted, mode, lambda line: line.endswith(": interrupted"))


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_lost_when_pservers_are_killed_in_a_durable_job(mode: str) -> None:
    seen = keeps_promises(durable, mode, recovers)
    assert seen or mode == "sync-abort"  # most of those end before a recovery


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_lost_when_pservers_recover_from_local_cuts(mode: str) -> None:
    seen = keeps_promises(with_deltas, mode, recovers)
    assert seen or mode == "sync-abort"  # most of those end before a recovery


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_lost_when_pservers_are_killed_before_anything_is_durable(mode: str) -> None:
    assert keeps_promises(early, mode, recovers)


@pytest.mark.parametrize("mode", PAIRED_MODES)
def test_nothing_is_lost_when_backups_take_over(mode: str) -> None:
    assert keeps_promises(with_backups, mode, lambda line: "serves part" in line)
