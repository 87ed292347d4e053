"""A trainer and a pserver are killed at once: with policy `wait` the job ends by name, in time."""

from __future__ import annotations

import pytest

from tests.sim.history import run
from tests.sim.scenario import ProcessFault, Scenario, Strike


@pytest.mark.parametrize(
    "mode",
    [
        "async-wait",
        pytest.param("sync", marks=pytest.mark.long),
        pytest.param("ssp-wait", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize(
    ("successor_s", "why"),
    [(0.0, "before it had asked this pserver to serve part 1"), (1.0, "retained pushes")],
)
def test_a_trainer_that_is_gone_holds_a_failover_back_for_a_while_only(
    mode: str, successor_s: float, why: str
) -> None:
    """A successor lets the backup serve, but is refused: nobody can send its pushes again."""
    kills = (
        Strike(0.3, ProcessFault.KILL, "trainer 0", successor_s),
        Strike(0.31, ProcessFault.KILL, "pserver 1", 0.5),
    )
    scenario = Scenario(
        *(1, mode, "stream-tcp", (60, 60, 60), (0.0, 0.0, 0.0)),
        strikes=kills,
        restarts=2,
        is_durable=True,
        has_backups=True,
    )

    verdict = run(scenario)

    assert not verdict.violation, verdict
    ends = [line for line in verdict.trace if ":6170 ends: " in line]
    assert len(ends) == 2
    assert all("TRAINER_LOST: trainer 0 (gone" in line and why in line for line in ends), verdict
