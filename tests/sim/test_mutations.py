"""Every planted bug is found within a fixed number of histories."""

from __future__ import annotations

import pytest

from tests.sim.cluster import run
from tests.sim.mutations import MUTATIONS
from tests.sim.scenario import drawn

MOST_HISTORIES = 400


@pytest.mark.parametrize("name", MUTATIONS)
def test_histories_find_a_planted_bug(name: str) -> None:
    mutation = MUTATIONS[name]

    with mutation.planted():
        found = any(
            run(drawn(seed, mutation.mode, pservers_die=False)).violation
            for seed in range(MOST_HISTORIES)
        )

    assert found
    assert len(MUTATIONS) >= 20
