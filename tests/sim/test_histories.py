"""Some histories of each mode keep every promise; `python -m tests.sim` runs any number."""

from __future__ import annotations

import pytest

from tests.sim.history import run
from tests.sim.scenario import (
    MODES,
    PAIRED_MODES,
    drawn,
    durable,
    early,
    interrupted,
    with_backups,
    with_deltas,
)

HISTORIES, DURABLE, DELTAS, EARLY, BACKUPS, INTERRUPTED = 8, 6, 4, 4, 6, 6


@pytest.mark.parametrize("mode", MODES)
def test_no_history_breaks_a_promise(mode: str) -> None:
    for seed in range(HISTORIES):
        verdict = run(drawn(seed, mode))
        assert not verdict.violation, verdict


@pytest.mark.parametrize("mode", MODES)
def test_an_interrupted_trainer_has_not_completed(mode: str) -> None:
    left = 0
    for seed in range(INTERRUPTED):
        verdict = run(interrupted(seed, mode))
        assert not verdict.violation, verdict
        left += any(line.endswith(": interrupted") for line in verdict.trace)
    assert left > 0


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_lost_when_pservers_are_killed_in_a_durable_job(mode: str) -> None:
    recovered = 0
    for seed in range(DURABLE):
        verdict = run(durable(seed, mode))
        assert not verdict.violation, verdict
        recovered += any("pushes again" in line for line in verdict.trace)
    assert recovered > 0 or mode == "sync-abort"  # most of those end before a recovery


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_lost_when_pservers_recover_from_local_cuts(mode: str) -> None:
    recovered = 0
    for seed in range(DELTAS):
        verdict = run(with_deltas(seed, mode))
        assert not verdict.violation, verdict
        recovered += any("pushes again" in line for line in verdict.trace)
    assert recovered > 0 or mode == "sync-abort"  # most of those end before a recovery


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_lost_when_pservers_are_killed_before_anything_is_durable(mode: str) -> None:
    recovered = 0
    for seed in range(EARLY):
        verdict = run(early(seed, mode))
        assert not verdict.violation, verdict
        recovered += any("pushes again" in line for line in verdict.trace)
    assert recovered > 0


@pytest.mark.parametrize("mode", PAIRED_MODES)
def test_nothing_is_lost_when_backups_take_over(mode: str) -> None:
    taken_over = 0
    for seed in range(BACKUPS):
        verdict = run(with_backups(seed, mode))
        assert not verdict.violation, verdict
        taken_over += any("serves part" in line for line in verdict.trace)
    assert taken_over > 0
