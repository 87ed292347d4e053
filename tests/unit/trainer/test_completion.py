"""Trainer 0 waits for the others without holding them up, and not for ever."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from psrt.core.errors import DeadlineError
from psrt.trainer.training.completion import CompletionWait, Members, await_others
from tests.support.clock import ManualClock

PATIENCE_S = 60.0


def looks(*answers: Members) -> Callable[[], Members]:
    left = iter(answers)
    return lambda: next(left)


def test_nobody_is_waited_for_when_the_others_are_gone() -> None:
    waiting = CompletionWait(0, PATIENCE_S, ManualClock(), print)
    arrivals: list[str] = []

    await_others(
        waiting, looks(Members(["running", "completed", "lost"], 7)), lambda: arrivals.append("")
    )

    assert arrivals == []


def test_a_trainer_that_was_never_seen_is_waited_for() -> None:
    waiting = CompletionWait(0, PATIENCE_S, ManualClock(), print)

    assert not waiting.over(Members(["running", "unseen"], 0))


def test_trainer_0_arrives_at_rounds_until_the_others_have_completed() -> None:
    running, gone = Members(["running", "running"], 5), Members(["running", "completed"], 7)
    arrivals: list[str] = []

    last = await_others(
        CompletionWait(0, PATIENCE_S, ManualClock(), print),
        looks(running, running, gone),
        lambda: arrivals.append("round"),
    )

    assert arrivals == ["round", "round"]
    assert last is gone


def test_the_wait_ends_when_nothing_moves_and_names_who_is_missing() -> None:
    clock = ManualClock()
    waiting = CompletionWait(0, PATIENCE_S, clock, lambda line: None)
    stuck = Members(["running", "completed", "running"], 5)
    waiting.over(stuck)
    clock.advance(PATIENCE_S)

    with pytest.raises(DeadlineError, match=r"waits for trainer 2 to complete.* for 60 s"):
        waiting.over(stuck)


def test_a_slow_trainer_that_still_pushes_is_waited_for() -> None:
    clock = ManualClock()
    waiting = CompletionWait(0, PATIENCE_S, clock, lambda line: None)

    for updates in range(10):
        clock.advance(PATIENCE_S * 0.9)
        assert not waiting.over(Members(["running", "running"], updates))


def test_the_wait_says_now_and_then_whom_it_is_for() -> None:
    clock, lines = ManualClock(), list[str]()
    waiting = CompletionWait(0, PATIENCE_S, clock, lines.append)

    for updates in range(12):
        waiting.over(Members(["running", "running", "running"], updates))
        clock.advance(1.0)

    assert lines == ["waiting for trainer 1 and trainer 2 to complete"] * 2
