"""A running job under a real Prometheus, a stall that raises an alert, and grpcurl."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from psrt.observe.watching import text_of
from tests.support.carriers import eventually
from tests.support.processes import Running, psrt
from tests.support.prometheus import SECONDS, Watching, missing, prometheus
from tests.support.pserver import daemon
from tests.support.small_job import BATCH, lines, write_files

LONG_EPOCHS = 1_000_000
PATIENCE = "psrt_pserver_round_open_seconds > 60", "psrt_pserver_round_open_seconds > 2"
"""The limit of an open round in the rules, and the one of this test."""

needs_prometheus = pytest.mark.skipif(bool(missing()), reason=f"not installed: {missing()}")


@dataclass(frozen=True)
class WatchedJob:
    pserver: str
    trainers: list[Running]
    watching: Watching


@contextmanager
def watched_job(folder: Path) -> Iterator[WatchedJob]:
    """A pserver and two trainers in mode sync, scraped; stopped in the end."""
    job = write_files(folder / "job", [lines(4 * BATCH, seed=1)] * 2, epochs=LONG_EPOCHS)
    with ExitStack() as stack:
        pserver = stack.enter_context(daemon(folder, "--metrics", "127.0.0.1:0"))
        flags = "--endpoints", pserver.endpoint, "--trainers", "2", "--metrics", "127.0.0.1:0"
        trainers = [
            stack.enter_context(
                psrt(
                    folder / f"trainer.{number}.log",
                    *("trainer", *flags, "--trainer-id", str(number), str(job)),
                )
            )
            for number in range(2)
        ]
        for trainer in trainers:
            trainer.wait_for("epoch")
        targets = [pserver.facts["metrics"], *map(metrics_of, trainers)]
        rules = text_of("alerts")
        assert PATIENCE[0] in rules
        yield WatchedJob(
            targets[0],
            trainers,
            stack.enter_context(prometheus(folder, targets, rules.replace(*PATIENCE))),
        )


def metrics_of(trainer: Running) -> str:
    found = re.search(r"metrics on http://(\S+)/metrics", trainer.output)
    assert found, trainer.output
    return found[1]


@needs_prometheus
def test_prometheus_scrapes_a_job_and_a_stopped_trainer_raises_an_alert(tmp_path: Path) -> None:
    with watched_job(tmp_path) as job:
        watching = job.watching

        def all_are_scraped() -> bool:
            return len(watching.values("up == 1 and scrape_samples_scraped > 20")) == 3

        eventually(all_are_scraped, "all three targets", SECONDS)
        eventually(
            lambda: len(watching.values("rate(psrt_trainer_steps_total[10s]) > 0")) == 2,
            "steps of both trainers",
            SECONDS,
        )
        for expression in expressions():
            watching.ask("query", query=re.sub(r"[$]\w+", ".*", expression))
        assert watching.fired("PsrtRoundStalled") == set()

        os.kill(job.trainers[1].process.pid, signal.SIGSTOP)
        try:
            eventually(
                lambda: watching.fired("PsrtRoundStalled") == {job.pserver}, "the alert", SECONDS
            )
        finally:
            os.kill(job.trainers[1].process.pid, signal.SIGCONT)
        eventually(
            lambda: watching.values("psrt_pserver_round_open_seconds < 1") != {},
            "rounds that go on",
            SECONDS,
        )


def expressions() -> list[str]:
    """All queries of the dashboard."""
    panels = json.loads(text_of("dashboard"))["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


STATUS_NAMES = "statusJson", "status_json"
"""Names of a field that releases of grpcurl print."""
GRPCURL = shutil.which("grpcurl") or shutil.which("grpcurl", path=Path(sys.executable).parent)


@pytest.mark.skipif(GRPCURL is None, reason="no grpcurl")
def test_grpcurl_lists_the_services_and_their_health(tmp_path: Path) -> None:
    def grpcurl(*arguments: str) -> str:
        command = [str(GRPCURL), "-plaintext", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    with daemon(tmp_path) as pserver:
        services = grpcurl(pserver.endpoint, "list").split()
        calls = grpcurl(pserver.endpoint, "list", "psrt.v1.Pserver").split()
        health = json.loads(grpcurl(pserver.endpoint, "grpc.health.v1.Health/Check"))
        status = json.loads(
            grpcurl(
                *("-d", '{"header": {"protocol": 1, "method": "METHOD_STATUS"}}'),
                *(pserver.endpoint, "psrt.v1.Pserver/Call"),
            )
        )

    assert {"psrt.v1.Pserver", "grpc.health.v1.Health"} <= set(services)
    assert calls == [f"psrt.v1.Pserver.{name}" for name in ("Attend", "Call", "CallLarge")]
    assert health == {"status": "SERVING"}
    (facts,) = (value for key, value in status["header"].items() if key in STATUS_NAMES)
    assert json.loads(facts)["trainers"] == []
