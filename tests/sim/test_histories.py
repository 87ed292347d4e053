"""Some hundred histories of each mode keep every promise; `python -m tests.sim` runs more."""

from __future__ import annotations

import pytest

from tests.sim.cluster import run
from tests.sim.scenario import MODES, drawn

HISTORIES = 60


@pytest.mark.parametrize("mode", MODES)
def test_no_history_breaks_a_promise(mode: str) -> None:
    for seed in range(HISTORIES):
        verdict = run(drawn(seed, mode, pservers_die=False))
        assert not verdict.violation, verdict
