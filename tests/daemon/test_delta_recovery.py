"""A pserver that is killed twice goes on from its local cuts, without a further cut of the job."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from psrt.storage.locate import directory_at
from tests.daemon.test_recovery import model_of
from tests.support.carriers import eventually
from tests.support.processes import DEADLINE_S, Running, psrt
from tests.support.small_job import BATCH, lines, write_files

EPOCHS = 12
SECTION = """
[pserver]
delta_every_s = 0.1
"""


def written_job(directory: Path, mode: str) -> Path:
    train = [lines(BATCH * 40, seed=n) for n in range(2)]
    job = write_files(directory, train, mode, epochs=EPOCHS)
    text = job.read_text().replace("[job]", '[job]\ndurability = "delta"', 1)
    job.write_text(text + SECTION)
    return job


@contextmanager
def launched(job: Path, name: str) -> Iterator[Running]:
    directory = job.parent
    flags = "--save", str(directory / name), "--log-dir", str(directory / f"logs-{name}")
    cuts = "--checkpoint-dir", str(directory / f"cuts-{name}")
    with psrt(
        directory / f"{name}.log", "launch", str(job), "--pservers", "2", *flags, *cuts
    ) as running:
        yield running


class Victim:
    """One pserver of a job, and its processes that were killed."""

    def __init__(self, job: Path, name: str, number: int) -> None:
        self.ready = job.parent / f"logs-{name}" / f"pserver.{number}.ready.json"
        self.cuts = directory_at(job.parent / f"cuts-{name}")
        self.killed: list[int] = []

    def kill(self) -> None:
        """Kill the present process at once, when it has written two local cuts."""
        eventually(self._serves, "a pserver that serves", DEADLINE_S)
        facts = json.loads(self.ready.read_text())
        before = self._newest(facts["endpoint"])
        eventually(
            lambda: self._newest(facts["endpoint"]) > before + 1, "two local cuts", DEADLINE_S
        )
        os.kill(facts["pid"], signal.SIGKILL)
        self.killed.append(facts["pid"])

    def _serves(self) -> bool:
        if not self.ready.exists():
            return False
        return json.loads(self.ready.read_text())["pid"] not in self.killed

    def _newest(self, endpoint: str) -> int:
        _, port = endpoint.rsplit(":", 1)
        found = [re.fullmatch(rf"deltas-.*-{port}/(\d+)\.json", n) for n in self.cuts.names()]
        return max((int(match[1]) for match in found if match), default=0)


@pytest.mark.long
def test_in_sync_a_pserver_that_is_killed_twice_changes_no_bit(tmp_path: Path) -> None:
    job = written_job(tmp_path, "sync")
    with launched(job, "whole") as whole:
        assert whole.exit_code() == 0, whole.output
    with launched(job, "killed") as killed:
        second, first = Victim(job, "killed", 1), Victim(job, "killed", 0)
        second.kill()
        second.kill()
        first.kill()
        assert killed.exit_code() == 0, killed.output

    logs = [path.read_text() for path in (tmp_path / "logs-killed").glob("pserver.*.log")]
    assert sum("and local cut" in log for log in logs) == 2
    expected, found = model_of(tmp_path / "whole"), model_of(tmp_path / "killed")
    assert expected.keys() == found.keys()
    assert [name for name in expected if not np.array_equal(expected[name], found[name])] == []


@pytest.mark.long
@pytest.mark.parametrize("mode", ["async", "half_async", "geo"])
def test_training_goes_on_when_a_pserver_is_killed_twice(tmp_path: Path, mode: str) -> None:
    job = written_job(tmp_path, mode)
    with launched(job, "killed") as killed:
        victim = Victim(job, "killed", 1)
        victim.kill()
        victim.kill()
        assert killed.exit_code() == 0, killed.output

    logs = [p.read_text() for p in (tmp_path / "logs-killed").glob("*.log")]
    assert "and local cut" in "".join(logs)
    assert "pushes again" in "".join(logs)
    assert model_of(tmp_path / "killed")
    assert not list((tmp_path / "cuts-killed").glob("deltas-*/*.json"))
