"""A trainer that is killed goes on in a new process: every example counts once, in Sync to the
bit."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tests.daemon.test_recovery import model_of
from tests.support.carriers import eventually
from tests.support.counting_job import BATCH, counts_in, write_counting_job
from tests.support.processes import DEADLINE_S, Running, child_of, psrt
from tests.support.small_job import BATCH as SMALL_BATCH
from tests.support.small_job import lines, write_files

STEPS = 600
CASES = [("async", "stream"), ("ssp", "stream"), ("half_async", "stream"), ("sync", "grpc")]
CASES += [("sync", "stream"), ("async", "grpc")]
SECTION = """
on_trainer_loss = "wait"
"""


def counting_job(directory: Path, mode: str) -> Path:
    job = write_counting_job(directory, [BATCH * STEPS] * 2, mode, 1, 0, "reader_threads = 1")
    text = job.read_text().replace("[pserver]\ncheckpoint_every_steps = 0\n", "")
    job.write_text(f"{text}{SECTION}[trainer]\nlog_every_s = 0.05\n")
    return job


@contextmanager
def launched(job: Path, name: str, *flags: str) -> Iterator[Running]:
    directory = job.parent
    saved = "--save", str(directory / name), "--log-dir", str(directory / f"logs-{name}")
    counts = "--pservers", "2", "--trainers", "2", "--restarts", "4"
    log = directory / f"{name}.log"
    with psrt(log, "launch", str(job), *counts, *saved, *flags) as running:
        yield running


def kill(running: Running, job: Path, name: str, trainer: int, after: int) -> None:
    """Kill a trainer that has logged `after` steps or more."""
    log = job.parent / f"logs-{name}" / f"trainer.{trainer}.log"

    def steps() -> int:
        text = log.read_text() if log.exists() else ""
        return max(map(int, re.findall(r" step (\d+) ", text)), default=0)

    eventually(lambda: steps() >= after or running.process.poll() is not None, "steps", DEADLINE_S)
    assert running.process.poll() is None, running.output
    os.kill(child_of(running.process.pid, f"trainer.{trainer}"), signal.SIGKILL)
    again = f"trainer.{trainer} was killed and is started again"
    count = running.output.count(again)
    eventually(lambda: running.output.count(again) > count or count > 0, again, DEADLINE_S)


@pytest.mark.long
@pytest.mark.parametrize(("mode", "carrier"), CASES)
def test_every_example_counts_once_though_a_trainer_is_killed(
    tmp_path: Path, mode: str, carrier: str
) -> None:
    job = counting_job(tmp_path, mode)
    with launched(job, "killed", "--carrier", carrier) as killed:
        kill(killed, job, "killed", 1, after=100)
        assert killed.exit_code() == 0, killed.output

    log = (tmp_path / "logs-killed" / "trainer.1.log").read_text()
    assert "goes on for a process that ended: epoch 1 after" in log
    each = 0.5 if mode == "sync" else 1.0
    assert set(counts_in(tmp_path / "killed", 2 * BATCH * STEPS)) == {each}


def test_in_sync_killed_trainers_change_no_bit(tmp_path: Path) -> None:
    train = [lines(SMALL_BATCH * 150, seed=n) for n in range(2)]
    job = write_files(tmp_path, train, "sync", epochs=3)
    text = job.read_text().replace('mode = "sync"', f'mode = "sync"{SECTION}')
    job.write_text(text.replace("log_every_s = 0.1", "log_every_s = 0.05"))
    with launched(job, "whole") as whole:
        assert whole.exit_code() == 0, whole.output
    with launched(job, "killed") as killed:
        kill(killed, job, "killed", 1, after=50)
        kill(killed, job, "killed", 0, after=50)
        assert killed.exit_code() == 0, killed.output

    expected, found = model_of(tmp_path / "whole"), model_of(tmp_path / "killed")
    assert expected.keys() == found.keys()
    assert [name for name in expected if not np.array_equal(expected[name], found[name])] == []
