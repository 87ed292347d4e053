"""No step is lost or doubled in histories in which the number of trainers changes."""

from __future__ import annotations

import pytest

from tests.sim.resizing import drawn_changes, durable_changes, run_changes
from tests.sim.scenario import PAIRED_MODES

HISTORIES = 4
DURABLE_HISTORIES = 2


@pytest.mark.parametrize("mode", PAIRED_MODES)
def test_every_step_is_trained_once_though_the_number_of_trainers_changes(mode: str) -> None:
    changed = 0
    for seed in range(HISTORIES):
        verdict = run_changes(*drawn_changes(seed, mode))
        assert not verdict.violation, verdict
        changed += any("the job goes on with" in line for line in verdict.trace)
    assert changed > 0


@pytest.mark.parametrize("has_deltas", [False, True])
@pytest.mark.parametrize("mode", PAIRED_MODES)
def test_a_durable_job_recovers_killed_pservers_with_its_new_number(
    mode: str, has_deltas: bool
) -> None:
    """A kill during a change ends the job by name; one behind it costs no step."""
    changed = 0
    for seed in range(DURABLE_HISTORIES):
        verdict = run_changes(*durable_changes(seed, mode, has_deltas, are_killed=seed % 4 > 0))
        assert not verdict.violation, verdict
        changed += any("the job goes on with" in line for line in verdict.trace)
    assert changed > 0
