"""No step is lost or doubled in histories in which the number of trainers changes."""

from __future__ import annotations

import pytest

from tests.sim.resizing import drawn_changes, run_changes
from tests.sim.scenario import PAIRED_MODES

HISTORIES = 12


@pytest.mark.parametrize("mode", PAIRED_MODES)
def test_every_step_is_trained_once_though_the_number_of_trainers_changes(mode: str) -> None:
    changed = 0
    for seed in range(HISTORIES):
        verdict = run_changes(*drawn_changes(seed, mode))
        assert not verdict.violation, verdict
        changed += any("the job goes on with" in line for line in verdict.trace)
    assert changed > 0
