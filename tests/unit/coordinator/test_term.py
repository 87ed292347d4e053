"""Two coordinators of one directory, in every order of their steps: what one reports, both have."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import pytest

from psrt.coordinator.term import Term, following, superseded


def test_each_coordinator_begins_the_next_term() -> None:
    first = following(None, "a")

    assert first == Term(1, "a")
    assert following(first, "b") == Term(2, "b")


@pytest.mark.parametrize("newest", [Term(4, "b"), Term(3, "b"), Term(5, "a"), None])
def test_a_coordinator_is_superseded_by_any_other_term(newest: Term | None) -> None:
    mine = Term(3, "a")

    assert superseded(mine, mine) == ""
    assert superseded(mine, newest)


@dataclass
class TwoCoordinators:
    """The steps of an old coordinator that completes a cut, and of its successor."""

    newest: Term = field(default_factory=lambda: Term(1, "old"))
    is_there: bool = False  # the manifest of the old one's cut
    reported: bool = False
    gave_up: bool = False
    listed: bool | None = None

    def old(self) -> list:
        return [self.check, self.write, self.check, self.report]

    def new(self) -> list:
        return [self.take, self.list_cuts]

    def check(self) -> None:
        self.gave_up = self.gave_up or bool(superseded(Term(1, "old"), self.newest))

    def write(self) -> None:
        self.is_there = self.is_there or not self.gave_up

    def report(self) -> None:
        self.reported = not self.gave_up

    def take(self) -> None:
        self.newest = following(self.newest, "new")

    def list_cuts(self) -> None:
        self.listed = self.is_there


ORDERS = list(itertools.combinations(range(6), 2))
"""Places of the successor's two steps among all six."""


@pytest.mark.parametrize("places", ORDERS)
def test_a_cut_that_was_reported_is_one_that_the_successor_goes_on_from(
    places: tuple[int, int],
) -> None:
    world = TwoCoordinators()
    old, new = iter(world.old()), iter(world.new())

    for place in range(6):
        next(new if place in places else old)()

    if world.reported:
        assert world.listed
    if places[0] == 0:  # the successor was there first
        assert not world.is_there


def test_the_second_check_is_needed() -> None:
    """Without it a cut could be reported that the successor has not seen."""
    world = TwoCoordinators()
    for step in (world.check, world.take, world.list_cuts, world.write, world.report):
        step()

    assert world.reported
    assert not world.listed
