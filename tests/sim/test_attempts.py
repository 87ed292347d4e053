"""Jobs that end and are resumed from their cuts lose no step, and count none twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.sim.attempt import EARLIER, LATEST, Attempt, Repeated, repeated
from tests.sim.attempts import run_attempts
from tests.sim.scenario import MODES, ProcessFault, Strike

HISTORIES, MOST_HISTORIES = 2, 8

FIRST = Attempt("async", "anew", 2, (0.0, 0.0), cuts_s=(0.1,), ends_s=0.2)
CALM = Repeated(1, "async", "stream-tcp", steps=(80,), joins_s=(0.0,))


@pytest.mark.parametrize("mode", MODES)
def test_every_step_counts_once_though_a_job_is_killed_and_resumed(mode: str) -> None:
    resumed = 0
    for seed in range(MOST_HISTORIES):
        verdict = run_attempts(repeated(seed, mode))
        assert not verdict.violation, verdict
        resumed += any("begins with cut" in each and "cut 0" not in each for each in verdict.trace)
        if resumed and seed + 1 >= HISTORIES:
            return
    pytest.fail("no history has resumed a cut")


@pytest.mark.parametrize("begins", [LATEST, EARLIER])
def test_an_attempt_begins_with_the_cut_that_it_names(begins: str) -> None:
    first = replace(FIRST, cuts_s=(0.1, 0.16), ends_s=0.25)
    last = Attempt("async", begins, 3, (0.0, 0.3, 0.0))

    verdict = run_attempts(replace(CALM, attempts=(first, last)))

    assert not verdict.violation, verdict
    number = {LATEST: 2, EARLIER: 1}[begins]
    begun = [line for line in verdict.trace if f"begins with cut {number}:" in line]
    assert len(begun) == 3


def test_a_cut_that_was_reported_survives_the_loss_of_power() -> None:
    first = replace(FIRST, loses_power=True)
    last = Attempt("async", LATEST, 2, (0.0, 0.0))

    verdict = run_attempts(replace(CALM, attempts=(first, last)))

    assert not verdict.violation, verdict
    assert sum("begins with cut 1:" in line for line in verdict.trace) == 2


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_pserver_that_is_killed_behind_the_last_cut_does_not_delay_the_end(attempts: int) -> None:
    """Its backup makes none: there is one attempt. Once it is given up, once complete before."""
    found = repeated(43, "half-async")
    kill = Strike(0.2696, ProcessFault.KILL, "pserver 1", 0.13)
    last = replace(found.attempts[-1], strikes=(kill,), joins_s=(0.0, 0.0))
    all_attempts = (*found.attempts[:-1], last)

    verdict = run_attempts(replace(found, attempts=all_attempts[-attempts:]))

    assert not verdict.violation, verdict
    assert any("serves part 1" in line for line in verdict.trace)
    assert not any("are not durable after" in line for line in verdict.trace)
