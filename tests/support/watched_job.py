"""A real job of 2 pservers with a page, whose trainers can be made to hang."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.carriers import eventually
from tests.support.processes import DEADLINE_S, Running, child_of, psrt


@dataclass
class WatchedJob:
    """A running launch; `url` is the page that pserver 0 serves."""

    running: Running
    endpoints: list[str]
    url: str

    @contextlib.contextmanager
    def stopped(self, trainer: int) -> Iterator[None]:
        """Stop the process of a trainer, as one that hangs."""
        pid = child_of(self.running.process.pid, f"trainer.{trainer}")
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def watched_job(
    folder: Path, job: Path, *flags: str, trainers: int = 2, of_pservers: str = ""
) -> Iterator[WatchedJob]:
    """Run `job` with pages of its pservers, until the end of the block; it should be a long one.

    `flags` are those of the launch, `of_pservers` further ones of its pservers.
    """
    logs = folder / "logs"
    given = "--pservers", "2", "--trainers", str(trainers), "--log-dir", str(logs), *flags
    pages = "--pserver-args", f"--metrics 127.0.0.1:0 {of_pservers}"
    with psrt(folder / "launch.log", "launch", *given, *pages, str(job)) as running:
        ready = [logs / f"pserver.{number}.ready.json" for number in (0, 1)]
        eventually(lambda: all(map(Path.exists, ready)), "the pservers", DEADLINE_S, logs=[logs])
        facts = [json.loads(path.read_text()) for path in ready]
        try:
            running.wait_for("step")
            endpoints = [each["endpoint"] for each in facts]
            yield WatchedJob(running, endpoints, f"http://{facts[0]['metrics']}/")
        finally:
            running.process.send_signal(signal.SIGINT)
            running.exit_code()
