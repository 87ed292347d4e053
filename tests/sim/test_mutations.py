"""Every planted bug is found within a fixed number of histories."""

from __future__ import annotations

import pytest

from tests.sim.history import Verdict, run
from tests.sim.kinds import KINDS
from tests.sim.mutations import MUTATIONS, Mutation
from tests.sim.scenario import drawn

MOST_HISTORIES = 400
SHORT = [name for number, name in enumerate(MUTATIONS) if number % 3 == 0]
"""Planted by default; `bin/test -m long` plants the others."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in SHORT else pytest.mark.long, id=name)
        for name in MUTATIONS
    ],
)
def test_histories_find_a_planted_bug(name: str) -> None:
    mutation = MUTATIONS[name]

    with mutation.planted():
        seeds = range(mutation.first, mutation.first + MOST_HISTORIES)
        found = any(_verdict(mutation, seed).violation for seed in seeds)

    assert found
    assert len(MUTATIONS) >= 20


def _verdict(mutation: Mutation, seed: int) -> Verdict:
    if mutation.kind == "plain":
        return run(drawn(seed, mutation.mode, pservers_die=False))
    return KINDS[mutation.kind].run(seed, mutation.mode)
