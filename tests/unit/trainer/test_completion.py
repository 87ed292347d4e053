"""Trainer 0 waits for the others without holding them up, and not for ever."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from psrt.communicator.members import Members, members_of
from psrt.core.errors import DeadlineError, ErrorCode, JobError
from psrt.trainer.training.completion import CompletionWait, await_others
from tests.support.clock import ManualClock

PATIENCE_S = 60.0


def waiting_of(
    clock: ManualClock, say: Callable[[str], object] = lambda line: None, policy: str = "shrink"
) -> CompletionWait:
    return CompletionWait(0, PATIENCE_S, policy, clock, say)


def looks(*answers: Members) -> Callable[[], Members]:
    left = iter(answers)
    return lambda: next(left)


def test_nobody_is_waited_for_when_the_others_are_gone() -> None:
    waiting = waiting_of(ManualClock(), print)
    arrivals: list[str] = []

    await_others(
        waiting, looks(Members(["running", "completed", "lost"], 7)), lambda: arrivals.append("")
    )

    assert arrivals == []


def test_a_trainer_that_was_never_seen_is_waited_for() -> None:
    waiting = waiting_of(ManualClock(), print)

    assert not waiting.over(Members(["running", "unseen"], 0))


def test_trainer_0_arrives_at_rounds_until_the_others_have_completed() -> None:
    running, gone = Members(["running", "running"], 5), Members(["running", "completed"], 7)
    arrivals: list[str] = []

    last = await_others(
        waiting_of(ManualClock(), print),
        looks(running, running, gone),
        lambda: arrivals.append("round"),
    )

    assert arrivals == ["round", "round"]
    assert last is gone


def test_the_wait_ends_when_nothing_moves_and_names_who_is_missing() -> None:
    clock = ManualClock()
    waiting = waiting_of(clock)
    stuck = Members(["running", "completed", "running"], 5)
    waiting.over(stuck)
    clock.advance(PATIENCE_S)

    with pytest.raises(DeadlineError, match=r"waits for trainer 2 to complete.* for 60 s"):
        waiting.over(stuck)


def test_a_slow_trainer_that_still_pushes_is_waited_for() -> None:
    clock = ManualClock()
    waiting = waiting_of(clock)

    for updates in range(10):
        clock.advance(PATIENCE_S * 0.9)
        assert not waiting.over(Members(["running", "running"], updates))


def test_the_wait_says_now_and_then_whom_it_is_for() -> None:
    clock, lines = ManualClock(), list[str]()
    waiting = waiting_of(clock, lines.append)

    for updates in range(12):
        waiting.over(Members(["running", "running", "running"], updates))
        clock.advance(1.0)

    assert lines == ["waiting for trainer 1 and trainer 2 to complete"] * 2


# --- trainers whose process is known to be there, or to have left -------------------------------


def with_second(presence: str, trained: tuple[int, ...] = ()) -> Members:
    """Trainer 1 of 2 runs, with this presence; nothing is updated."""
    return Members(["running"] * 2, 5, ["present", presence], frozenset(trained))


@pytest.mark.parametrize("policy", ["wait", "shrink", "abort"])
def test_a_trainer_whose_process_computes_is_waited_for_however_long_it_takes(policy: str) -> None:
    clock = ManualClock()
    waiting = waiting_of(clock, policy=policy)

    for _ in range(100):
        assert not waiting.over(with_second("present"))
        clock.advance(PATIENCE_S)


@pytest.mark.parametrize("policy", ["shrink", "abort"])
def test_the_pservers_decide_about_a_trainer_that_is_gone(policy: str) -> None:
    clock = ManualClock()
    waiting = waiting_of(clock, policy=policy)

    for _ in range(100):
        assert not waiting.over(with_second("gone"))
        clock.advance(PATIENCE_S)


def test_with_wait_the_wait_for_a_trainer_that_is_gone_ends_with_its_name() -> None:
    clock = ManualClock()
    waiting = waiting_of(clock, policy="wait")
    waiting.over(with_second("gone"))
    clock.advance(PATIENCE_S)

    with pytest.raises(DeadlineError, match=r"waits for trainer 1 \(gone\) to complete"):
        waiting.over(with_second("gone"))


def test_two_trainers_that_wait_for_each_other_do_not_wait_for_ever() -> None:
    clock = ManualClock()
    waiting = waiting_of(clock)
    waiting.over(with_second("present", trained=(0, 1)))
    clock.advance(PATIENCE_S)

    with pytest.raises(DeadlineError, match="waits for trainer 1 to complete"):
        waiting.over(with_second("present", trained=(0, 1)))


def test_a_wait_that_ends_without_a_lost_trainer_says_so() -> None:
    lines = list[str]()

    waiting_of(ManualClock(), lines.append).over(Members(["running", "lost", "completed"], 7))

    assert lines == [
        "warning: going on without trainer 1, which left without completing: the model lacks what "
        "it did not train on"
    ]


def test_a_status_with_an_error_raises_it() -> None:
    error = {"code": 61, "message": "trainer 1 left; the job was aborted.", "hint": "See its log."}

    with pytest.raises(JobError, match="trainer 1 left") as raised:
        members_of({"round": 0, "global_step": 0, "trainers": [], "error": error})

    assert raised.value.code is ErrorCode.TRAINER_LOST


def test_a_status_of_an_older_pserver_has_no_presence() -> None:
    status = {"round": 2, "global_step": 0, "trainers": [{"trainer": 0, "state": "running"}]}

    assert members_of(status) == Members(["running"], 2, ["unknown"])
