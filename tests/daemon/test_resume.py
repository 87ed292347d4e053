"""A job that was killed goes on from its latest cut, to the bit of one that was not (Sync)."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from psrt.core.errors import CATALOGUE, ErrorCode
from psrt.pserver.checkpoints import complete_cuts, find_cut
from psrt.storage.locate import directory_at
from tests.support.by_hand import train_by_hand
from tests.support.carriers import eventually
from tests.support.processes import DEADLINE_S, Running, psrt
from tests.support.saved_models import model_of
from tests.support.small_job import BATCH, lines, write_files

EPOCHS = 10
SECTION = """
[pserver]
checkpoint_every_steps = 20
"""


def plain_job(directory: Path) -> Path:
    return write_files(directory, [lines(BATCH * 40, seed=n) for n in range(2)], epochs=EPOCHS)


def written_job(directory: Path) -> Path:
    job = plain_job(directory)
    job.write_text(job.read_text() + SECTION)
    return job


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job that was trained once, and killed once with an incremental cut in `cuts`."""
    job = written_job(tmp_path_factory.mktemp("killed"))
    cuts = job.parent / "cuts"
    train_by_hand(plain_job(job.parent / "plain"), job.parent / "whole")
    with launched(job, "killed", 2, "--checkpoint-dir", str(cuts)) as killed:
        eventually(
            lambda: len(complete_cuts(directory_at(cuts))) > 1, "an incremental cut", DEADLINE_S
        )
        ready = json.loads((job.parent / "logs-killed" / "pserver.1.ready.json").read_text())
        os.kill(ready["pid"], signal.SIGKILL)
        assert killed.exit_code() == CATALOGUE[ErrorCode.CHILD_FAILED].exit_code
    assert not (job.parent / "killed").exists()
    assert find_cut(directory_at(cuts), "latest").bases
    return job


@contextmanager
def launched(job: Path, name: str, pservers: int, *flags: str) -> Iterator[Running]:
    directory = job.parent
    given = "--pservers", str(pservers), "--save", str(directory / name)
    logs = "--log-dir", str(directory / f"logs-{name}")
    with psrt(directory / f"{name}.log", "launch", str(job), *given, *logs, *flags) as running:
        yield running


@pytest.mark.long
@pytest.mark.parametrize("pservers", [2, 3])
def test_a_job_whose_pserver_was_killed_ends_with_the_bits_of_one_that_was_not(
    killed: Path, tmp_path: Path, pservers: int
) -> None:
    job, name = killed, f"resumed-{pservers}"
    cuts = shutil.copytree(job.parent / "cuts", tmp_path / "cuts")
    flags = "--checkpoint-dir", str(cuts), "--resume", "latest"
    with launched(job, name, pservers, *flags) as resumed:
        code = resumed.exit_code()

    assert code == 0, resumed.output
    logs = [p.read_text() for p in (job.parent / f"logs-{name}").glob("trainer.*.log")]
    assert all("resumed cut" in log for log in logs)
    expected, found = model_of(job.parent / "whole"), model_of(job.parent / name)
    assert expected.keys() == found.keys()
    assert [name for name in expected if not np.array_equal(expected[name], found[name])] == []


@pytest.mark.long
def test_a_cut_that_is_found_damaged_while_it_loads_ends_the_job_and_names_the_file(
    killed: Path, tmp_path: Path
) -> None:
    cuts = shutil.copytree(killed.parent / "cuts", tmp_path / "cuts")
    newest = find_cut(directory_at(cuts), "latest")
    (first, *_) = [each for each in newest.stored_pages() if each.facts.get("rows")]
    damaged = cuts / first.file["name"]
    content = bytearray(damaged.read_bytes())
    content[len(content) // 3] ^= 1
    damaged.write_bytes(content)
    with launched(
        killed, "damaged", 2, "--checkpoint-dir", str(cuts), "--resume", "latest"
    ) as resumed:
        code = resumed.exit_code()

    assert code != 0
    logs = [p.read_text() for p in (killed.parent / "logs-damaged").glob("*.log")]
    assert any("could not be loaded" in log and first.file["name"] in log for log in logs)
    assert not (killed.parent / "damaged").exists()
