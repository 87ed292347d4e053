"""Failures of processes, as a launch reports them."""

from __future__ import annotations

import signal
from dataclasses import dataclass

import pytest

from psrt.launch.plan import PSERVER, ChildId
from psrt.launch.report import failure, totals

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


def test_metrics_of_the_users_own_have_means_beside_loss_and_auc() -> None:
    reports = [
        {"examples": 30, "loss": 0.5, "auc": 0.7, "metrics": {"gauc": 0.6}},
        {"examples": 10, "loss": 0.1, "metrics": {"gauc": 0.2}, "test_metrics": {"gauc": 0.9}},
        {},
    ]

    found = totals(reports)

    assert list(found) == ["examples", "loss", "auc", "train_gauc", "gauc"]
    assert found == pytest.approx(
        {"examples": 40, "loss": 0.4, "auc": 0.7, "train_gauc": 0.5, "gauc": 0.9}
    )


def test_a_metric_named_like_a_count_does_not_replace_it() -> None:
    assert totals([{"steps": 3, "loss": 0.5, "metrics": {"steps": 7.0}}]) == {
        "steps": 3,
        "loss": 0.5,
    }
