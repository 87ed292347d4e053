"""A backup takes over from a killed pserver, and the next one restores the redundancy."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psrt.core.errors import PsrtError
from tests.daemon.test_recovery import model_of
from tests.support.by_hand import train_by_hand
from tests.support.carriers import eventually
from tests.support.processes import DEADLINE_S, Running, psrt
from tests.support.pserver import onlooker, status
from tests.support.small_job import BATCH, lines, write_files

EPOCHS = 20
LONGEST_S = 300.0  # of a launch, on a busy host
STEPS = 40 * EPOCHS


def training_lines() -> list[list[str]]:
    return [lines(BATCH * 40, seed=n) for n in range(2)]


def written_job(directory: Path, mode: str) -> Path:
    job = write_files(directory, training_lines(), mode, epochs=EPOCHS)
    job.write_text(job.read_text().replace("[job]", '[job]\ndurability = "replica"', 1))
    return job


@contextmanager
def launched(job: Path, name: str, pservers: int = 2) -> Iterator[Running]:
    directory = job.parent
    flags = "--save", str(directory / name), "--log-dir", str(directory / f"logs-{name}")
    log = directory / f"{name}.log"
    with psrt(log, "launch", str(job), "--pservers", str(pservers), *flags) as running:
        yield running


def facts_of(job: Path, name: str, pserver: int) -> dict[str, Any]:
    """The ready file of a pserver; empty until it serves."""
    ready = job.parent / f"logs-{name}" / f"pserver.{pserver}.ready.json"
    return dict(json.loads(ready.read_text())) if ready.exists() else {}


def parts_of(job: Path, name: str, pserver: int) -> dict[int, dict[str, Any]]:
    """The parts that a pserver keeps copies of or serves, by number; none if it is not there."""
    facts = facts_of(job, name, pserver)
    try:
        client = onlooker(facts["endpoint"])
        try:
            return {each["part"]: each for each in status(client).get("parts", [])}
        finally:
            client.close()
    except (KeyError, PsrtError):
        return {}


def kill(job: Path, name: str, pserver: int, running: Running, after: int, *copied: int) -> None:
    """Kill a pserver once trainers have made `after` steps and the other one has these copies."""

    def has_copies() -> bool:
        steps = [int(each) for each in re.findall(r"step (\d+)", running.output)]
        if max(steps, default=0) < after:
            return False
        held = parts_of(job, name, 1 - pserver)
        return all(part in held and held[part]["role"] == "copy" for part in copied)

    eventually(has_copies, f"copies of parts {copied}", DEADLINE_S)
    os.kill(facts_of(job, name, pserver)["pid"], signal.SIGKILL)


def test_in_sync_killed_pservers_change_no_bit(tmp_path: Path) -> None:
    job = written_job(tmp_path, "sync")
    plain = tmp_path / "plain"
    train_by_hand(write_files(plain, training_lines(), "sync", epochs=EPOCHS), tmp_path / "whole")
    with launched(job, "killed") as killed:
        kill(job, "killed", 1, killed, 40, 1)
        kill(job, "killed", 0, killed, 200, 0, 1)
        assert killed.exit_code(LONGEST_S) == 0, killed.output

    assert f"step {STEPS}" in killed.output
    assert "serves part 1" in (tmp_path / "logs-killed" / "pserver.0.log").read_text()
    assert "serves part 0" in (tmp_path / "logs-killed" / "pserver.1.log").read_text()
    expected, found = model_of(tmp_path / "whole"), model_of(tmp_path / "killed")
    assert expected.keys() == found.keys()
    assert [name for name in expected if not np.array_equal(expected[name], found[name])] == []


@pytest.mark.long
@pytest.mark.parametrize("mode", ["async", "ssp"])
def test_training_goes_on_with_the_backup(tmp_path: Path, mode: str) -> None:
    job = written_job(tmp_path, mode)
    with launched(job, "killed") as killed:
        kill(job, "killed", 0, killed, 40, 0)
        assert killed.exit_code(LONGEST_S) == 0, killed.output

    assert "serves part 0" in (tmp_path / "logs-killed" / "pserver.1.log").read_text()
    assert model_of(tmp_path / "killed")


def test_a_job_with_one_pserver_is_refused(tmp_path: Path) -> None:
    job = written_job(tmp_path, "sync")
    with launched(job, "alone", pservers=1) as alone:
        assert alone.exit_code() != 0

    assert "needs two pservers or more" in alone.output
