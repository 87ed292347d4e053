"""The cut at the end of a job: its content, and pservers that are killed while it is made."""

from __future__ import annotations

from dataclasses import replace

import pytest

from psrt.communicator.base_communicator import BaseCommunicator
from tests.sim.history import run
from tests.sim.scenario import PAIRED_MODES, ProcessFault, Scenario, Strike

CALM = Scenario(1, "sync", "stream-tcp", steps=(6, 9), joins_s=(0.0, 0.0), ends_with_cut=True)


@pytest.mark.parametrize("mode", PAIRED_MODES)
def test_the_last_cut_of_a_job_has_all_that_pservers_hold(mode: str) -> None:
    verdict = run(replace(CALM, mode=mode))

    assert not verdict.violation, verdict
    assert verdict.cuts == 1


def test_a_job_whose_trainers_have_not_trained_ends_at_once_and_without_a_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(BaseCommunicator, "declare_trained", lambda communicator: None)

    verdict = run(replace(CALM, mode="async", is_durable=True, has_deltas=True))

    assert set(verdict.ends.values()) == {"completed"}
    ends_s = [float(line.split()[0]) for line in verdict.trace if "ends: completed" in line]
    assert len(ends_s) == 2
    assert max(ends_s) < end_of_last_step(verdict.trace) + 1.0  # by the simulated clock


@pytest.mark.parametrize("mode", ["sync", "async", pytest.param("ssp", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("pserver", "has_deltas"),
    [
        (0, False),
        (1, True),
        pytest.param(1, False, marks=pytest.mark.long),
        pytest.param(0, True, marks=pytest.mark.long),
    ],
)
def test_a_pserver_that_is_killed_at_the_end_of_a_durable_job_is_in_its_last_cut(
    mode: str, pserver: int, has_deltas: bool
) -> None:
    """It is killed at several moments around the end of the last trainer."""
    calm = replace(CALM, mode=mode, is_durable=True, has_deltas=has_deltas)
    whole = run(calm)
    ends_s = end_of_last_step(whole.trace)
    recovered = 0
    for number in range(-1, 6):
        at_s = round(ends_s + number * 0.004, 4)
        strike = Strike(at_s, ProcessFault.KILL, f"pserver {pserver}", for_s=0.3)
        verdict = run(replace(calm, strikes=(strike,)))

        assert not verdict.violation, verdict
        recovered += any("pushes again" in line for line in verdict.trace)
    assert recovered > 0


def end_of_last_step(trace: list[str]) -> float:
    """The time of the first COMPLETE of the trainer that ends last."""
    first: dict[str, float] = {}
    for line in trace:
        if ": COMPLETE of " in line:
            who = line.split(": COMPLETE of ")[1].split(" to ")[0]
            first.setdefault(who, float(line.split()[0]))
    return max(first.values())
