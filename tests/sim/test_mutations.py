"""Every planted bug is found within a fixed number of histories."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tests.sim.history import run
from tests.sim.mutations import MUTATIONS
from tests.sim.scenario import Scenario, drawn, durable, early, with_backups, with_deltas

MOST_HISTORIES = 400


@pytest.mark.parametrize("name", MUTATIONS)
def test_histories_find_a_planted_bug(name: str) -> None:
    mutation = MUTATIONS[name]

    with mutation.planted():
        draw: Callable[..., Scenario] = partial(drawn, pservers_die=False)
        draw = durable if mutation.is_durable else draw
        draw = with_deltas if mutation.has_deltas else draw
        draw = with_backups if mutation.has_backups else draw
        draw = early if mutation.is_early else draw
        seeds = range(mutation.first, mutation.first + MOST_HISTORIES)
        found = any(run(draw(seed, mutation.mode)).violation for seed in seeds)

    assert found
    assert len(MUTATIONS) >= 20
