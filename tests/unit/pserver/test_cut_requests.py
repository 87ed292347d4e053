"""Waits for a cut that was asked for."""

from __future__ import annotations

import pytest

from psrt.core.errors import JobError
from psrt.pserver.checkpoints import WaitingCaller
from psrt.pserver.serving.cuts.cut_requests import await_cut, no_cut
from tests.support.clock import ManualClock


def test_a_wait_ends_with_the_reason_why_the_cut_cannot_become_complete() -> None:
    def check() -> None:
        raise no_cut("trainer 0 left without completing")

    with pytest.raises(JobError, match="trainer 0 left without completing"):
        await_cut(WaitingCaller(0.0), ManualClock(), 1.0, check)


def test_a_wait_ends_at_its_deadline() -> None:
    clock = ManualClock()
    with pytest.raises(JobError, match="not complete in time"):
        await_cut(WaitingCaller(0.0), clock, clock.now())


def test_a_cut_that_is_complete_ends_the_wait() -> None:
    caller = WaitingCaller(0.0)
    caller.answer(3)
    await_cut(caller, ManualClock(), 1.0)
