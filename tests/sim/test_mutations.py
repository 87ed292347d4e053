"""Every planted bug is found within a fixed number of histories."""

from __future__ import annotations

import inspect

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
        found = next((seed for seed in seeds if _verdict(mutation, seed).violation), None)

    assert found is not None
    assert not _verdict(mutation, found).violation, "the history fails without the bug, too"
    assert len(MUTATIONS) >= 20


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_planted_function_is_called_as_the_original(name: str) -> None:
    """Otherwise histories would find that it cannot be called, and not its mistake."""
    mutation = MUTATIONS[name]
    planted = inspect.signature(mutation.make(mutation.original))
    parameters = inspect.signature(mutation.original).parameters.values()
    given = [each for each in parameters if each.kind is not inspect.Parameter.KEYWORD_ONLY]
    needed = [each for each in given if each.default is inspect.Parameter.empty]
    named = {each.name: None for each in parameters if each not in given}

    for arguments in (given, needed):
        planted.bind(*arguments, **named)


def _verdict(mutation: Mutation, seed: int) -> Verdict:
    if mutation.kind == "plain":
        return run(drawn(seed, mutation.mode, pservers_die=False))
    return KINDS[mutation.kind].run(seed, mutation.mode)
