"""Small histories: few steps, few faults, close together; they keep every promise, too."""

from __future__ import annotations

import pytest

from tests.sim.kinds import KINDS, drawn_of
from tests.sim.scenario import Scenario
from tests.sim.small import MOST_CHAIN_STEPS, MOST_DEALT_STEPS, MOST_FAULTS, MOST_LINK_FAULTS

SEEDS = range(300)
HISTORIES = 4


def scenario_of(kind: str, seed: int, is_small: bool) -> Scenario:
    return KINDS[kind].draw(seed, None, is_small)[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_small_history_has_few_steps_and_faults(kind: str) -> None:
    most = MOST_DEALT_STEPS if kind == "attempts" else MOST_CHAIN_STEPS
    for seed in SEEDS:
        small = scenario_of(kind, seed, is_small=True)

        assert max(small.steps) <= most
        assert len(small.links) <= MOST_LINK_FAULTS
        assert len({strike.at_s for strike in small.strikes}) <= MOST_FAULTS
        assert {strike.name for strike in small.strikes} <= {
            strike.name for strike in scenario_of(kind, seed, is_small=False).strikes
        }


@pytest.mark.parametrize("kind", KINDS)
def test_small_histories_keep_every_promise(kind: str) -> None:
    modes = KINDS[kind].modes
    for seed in range(HISTORIES):
        verdict = KINDS[kind].run(seed, modes[seed % len(modes)], is_small=True)

        assert not verdict.violation, verdict


def test_most_histories_among_all_are_small() -> None:
    sizes = [is_small for _, _, is_small in map(drawn_of, range(2000))]

    assert 0.93 < sum(sizes) / len(sizes) < 0.97
