"""Failures of processes, as a launch reports them."""

from __future__ import annotations

import signal
from dataclasses import dataclass

import pytest

from psrt.launch.plan import PSERVER, ChildId
from psrt.launch.report import failure

PSERVER_0 = ChildId(PSERVER, 0)


@dataclass
class Ended:
    """An ended child, as `failure` sees it."""

    code: int
    child: ChildId = PSERVER_0
    host: str = "127.0.0.1"
    endpoint: str = "127.0.0.1:6170"
    pid: int = 17
    seconds: float = 3.5
    log: str = "logs/pserver.0.log"

    def last_lines(self) -> str:
        return "the last line"


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (signal.SIGTERM, "SIGTERM"),
        (signal.SIGKILL, "SIGKILL"),
        (signal.SIGRTMIN, "SIGRTMIN"),
        (signal.SIGRTMIN + 5, "SIGRTMIN+5"),
        (signal.SIGRTMAX, "SIGRTMAX"),
    ],
)
def test_the_signal_that_killed_a_process_is_named(number: int, name: str) -> None:
    message = failure(Ended(-number)).message

    assert f"was killed by {name} after 3.5 s" in message
    assert "the last line" in message


def test_the_error_that_a_process_exited_with_is_named() -> None:
    text = failure(Ended(60)).message
    assert "exited with code 60 (DEADLINE: a wait passed its deadline)" in text
    assert "ended too early, with code 0" in failure(Ended(0)).message
