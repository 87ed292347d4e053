"""A pserver that is killed goes on from the newest cut, and nobody else is started again."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from psrt.pserver.checkpoints import complete_cuts
from psrt.storage.locate import directory_at
from tests.support.by_hand import train_by_hand
from tests.support.carriers import eventually
from tests.support.processes import DEADLINE_S, Running, psrt
from tests.support.small_job import BATCH, lines, write_files

EPOCHS = 12
SECTION = """
[pserver]
checkpoint_every_steps = 25
"""


def plain_job(directory: Path, mode: str) -> Path:
    train = [lines(BATCH * 40, seed=n) for n in range(2)]
    return write_files(directory, train, mode, epochs=EPOCHS)


def written_job(directory: Path, mode: str) -> Path:
    job = plain_job(directory, mode)
    text = job.read_text().replace("[job]", '[job]\ndurability = "cut"', 1)
    job.write_text(text + SECTION)
    return job


@contextmanager
def launched(job: Path, name: str) -> Iterator[Running]:
    directory = job.parent
    flags = "--save", str(directory / name), "--log-dir", str(directory / f"logs-{name}")
    cuts = "--checkpoint-dir", str(directory / f"cuts-{name}")
    log = directory / f"{name}.log"
    with psrt(log, "launch", str(job), "--pservers", "2", *flags, *cuts) as running:
        yield running


def kill(job: Path, name: str, pserver: int, after: int) -> None:
    """Kill a pserver at once, when cut number `after` is complete."""
    directory = directory_at(job.parent / f"cuts-{name}")
    eventually(
        lambda: after <= max(complete_cuts(directory), default=0), f"cut {after}", DEADLINE_S
    )
    ready = job.parent / f"logs-{name}" / f"pserver.{pserver}.ready.json"
    eventually(ready.exists, "a pserver that serves", DEADLINE_S)
    os.kill(json.loads(ready.read_text())["pid"], signal.SIGKILL)


def model_of(directory: Path) -> dict[str, np.ndarray]:
    """Dense parameters by file, and the rows of each table by id."""
    found = {p.name: np.load(p) for p in (directory / "dense").glob("*.npy")}
    for ids_file in sorted((directory / "sparse").glob("*.ids.npy")):
        rows = np.load(str(ids_file).replace(".ids.", ".rows."))
        found |= {f"row {id_}": row for id_, row in zip(np.load(ids_file), rows, strict=True)}
    return found


def test_in_sync_killed_pservers_change_no_bit(tmp_path: Path) -> None:
    job = written_job(tmp_path, "sync")
    train_by_hand(plain_job(tmp_path / "plain", "sync"), tmp_path / "whole")
    with launched(job, "killed") as killed:
        kill(job, "killed", 1, after=2)
        kill(job, "killed", 0, after=4)
        assert killed.exit_code() == 0, killed.output

    assert "pserver.1 was killed and is started again" in killed.output
    expected, found = model_of(tmp_path / "whole"), model_of(tmp_path / "killed")
    assert expected.keys() == found.keys()
    assert [name for name in expected if not np.array_equal(expected[name], found[name])] == []


@pytest.mark.long
@pytest.mark.parametrize("mode", ["async", "ssp", "half_async", "geo"])
def test_training_goes_on_without_a_killed_pserver_until_it_is_back(
    tmp_path: Path, mode: str
) -> None:
    job = written_job(tmp_path, mode)
    with launched(job, "killed") as killed:
        kill(job, "killed", 1, after=3)
        assert killed.exit_code() == 0, killed.output

    logs = [p.read_text() for p in (tmp_path / "logs-killed").glob("trainer.*.log")]
    assert len(logs) == 2
    assert "was started again and is sent what it has lost" in "".join(logs)
    assert "pushes again" in "".join(logs)
    assert model_of(tmp_path / "killed")
