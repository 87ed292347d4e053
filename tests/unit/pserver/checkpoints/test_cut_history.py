"""The cuts of a pserver as STATUS shows them."""

from __future__ import annotations

from psrt.coordinator.part_chain import PartOutcome
from psrt.pserver.checkpoints.cut_history import CutHistory
from tests.support.clock import ManualClock


def test_a_cut_is_under_way_from_its_freeze_to_its_end() -> None:
    clock = ManualClock()
    history = CutHistory(clock.now)
    history.began(3)
    clock.advance(2.0)
    history.written(3, 4096)
    during = history.describe()
    history.ended(3, PartOutcome.COMPLETE)
    clock.advance(5.0)
    after = history.describe()

    assert during["writing"] == {"number": 3, "for_s": 2.0, "bytes": 4096}
    assert during["newest"] is None
    assert after["writing"] is None
    assert after["newest"] == {"number": 3, "bytes": 4096, "took_s": 2.0, "age_s": 5.0}
    assert after["ends"] == {"complete": 1, "given_up": 0, "unknown": 0}


def test_a_cut_given_up_counts_once_and_has_the_first_reason() -> None:
    history = CutHistory(ManualClock().now)
    history.began(4)
    history.given_up(4, "a trainer was late")
    history.ended(4, PartOutcome.GIVEN_UP, "cut 4 was given up")

    facts = history.describe()

    assert facts["writing"] is None
    assert facts["given_up"] == {"number": 4, "why": "a trainer was late", "age_s": 0.0}
    assert facts["ends"]["given_up"] == 1


def test_an_end_of_no_known_cut_changes_nothing() -> None:
    history = CutHistory(ManualClock().now)
    history.began(5)

    history.ended(0, PartOutcome.UNKNOWN)

    assert history.describe()["writing"]["number"] == 5
    assert history.describe()["ends"] == {"complete": 0, "given_up": 0, "unknown": 0}
