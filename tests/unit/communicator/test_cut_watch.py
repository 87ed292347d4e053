"""The thread that waits for proposals of cuts lasts as long as its trainer."""

from __future__ import annotations

import queue
import threading

import pytest

from psrt.communicator.requests import CutWatch, PserverGroup
from psrt.communicator.requests import cut_watch as module
from psrt.core.errors import PsrtError, UnavailableError
from psrt.core.threads import CrashReport

LATE_S = 30.0


class Proposals(PserverGroup):
    """Answers each WATCH with the next of `answers`; the last one waits for `released`."""

    def __init__(self, *answers: int | PsrtError) -> None:
        self.crashes = CrashReport()
        self.released = threading.Event()
        self._answers = list(answers)

    def watch(self, known: int, timeout_s: float) -> int:
        if not self._answers:
            assert self.released.wait(LATE_S)
            return known
        answer = self._answers.pop(0)
        if isinstance(answer, PsrtError):
            raise answer
        return answer


def test_a_first_pserver_that_is_gone_for_a_while_ends_no_watch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "AGAIN_S", 0.0)
    gone = UnavailableError("the pserver cannot be reached")
    pservers = Proposals(1, gone, gone, 2)
    taken: queue.Queue[int] = queue.Queue()
    watch = CutWatch(pservers, taken.put)

    watch.start()

    assert [taken.get(timeout=LATE_S), taken.get(timeout=LATE_S)] == [1, 2]
    watch.close()
    pservers.released.set()
