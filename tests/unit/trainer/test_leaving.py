"""The end of training by a signal, over a communicator whose cuts come when the test says so."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from psrt.core.errors import ErrorCode, JobError
from psrt.trainer.cuts import Leaving
from tests.support.carriers import eventually

WAIT_S = 30.0


class Cuts:
    """A communicator: `asked` is set by a request, which ends when `answer` is set."""

    def __init__(self, makes_cuts: bool = True, error: JobError | None = None) -> None:
        self.makes_cuts, self.error = makes_cuts, error
        self.asked, self.answer = threading.Event(), threading.Event()
        self.take_part: Callable[[int], None] = lambda number: None

    def on_cut(self, action: Callable[[int], None]) -> None:
        self.take_part = action

    taken_cut = 0

    def request_cut(self, timeout_s: float, behind: int = 0) -> int:
        self.asked.set()
        self.answer.wait(WAIT_S)
        if self.error is not None:
            raise self.error
        return 1


def leaving(cuts: Cuts, said: list[str]) -> tuple[Leaving, threading.Event]:
    ended = threading.Event()
    return Leaving(cuts, ended, lambda: said.append("hurries"), said.append), ended  # type: ignore[arg-type]


def test_without_cuts_training_ends_at_once() -> None:
    said: list[str] = []
    leave, ended = leaving(Cuts(makes_cuts=False), said)

    with leave:
        leave.begin()
        assert ended.is_set()

    assert said == ["hurries"]


def test_training_goes_on_until_the_trainer_has_taken_part_in_a_cut() -> None:
    said: list[str] = []
    cuts = Cuts()
    leave, ended = leaving(cuts, said)

    with leave:
        cuts.take_part(6)  # by the schedule, before the signal
        assert not ended.is_set()
        leave.begin()
        assert cuts.asked.wait(WAIT_S)
        assert not ended.is_set()
        cuts.take_part(7)
        assert ended.is_set()
        cuts.answer.set()

    assert said == ["hurries", "leaves at cut 7"]


def test_training_ends_when_the_cut_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    cuts = Cuts(error=JobError("trainer 1 left.", code=ErrorCode.CUT_GIVEN_UP))
    leave, ended = leaving(cuts, [])

    with leave:
        leave.begin()
        cuts.answer.set()
        eventually(ended.is_set, "the end of training")

    assert "leaves without a cut: trainer 1 left." in caplog.text


def test_the_threads_end_with_a_training_that_was_not_interrupted() -> None:
    leave, _ = leaving(Cuts(), [])
    with leave:
        (waiting,) = [each for each in threading.enumerate() if each.name == "leaving"]

    waiting.join(WAIT_S)
    assert not waiting.is_alive()
