"""A job that was killed or interrupted goes on with other numbers of processes, and other modes.

The row of each example counts how often it was trained: once an epoch, whatever happened.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from psrt.core.errors import CATALOGUE, ErrorCode
from psrt.pserver.checkpoints import complete_cuts
from psrt.storage.locate import directory_at
from tests.support.carriers import eventually
from tests.support.counting_job import counts_in, write_counting_job
from tests.support.processes import Running, psrt

ROWS = [4000, 2800, 1200]
EXAMPLES, EPOCHS = sum(ROWS), 2
LONG_S = 150.0
"""Seven processes start at a time, each of which loads kernels."""


@contextmanager
def launched(
    job: Path, name: str, trainers: int, pservers: int, *flags: str, **variables: str
) -> Iterator[Running]:
    directory = job.parent
    given = "--trainers", str(trainers), "--pservers", str(pservers)
    given += "--save", str(directory / name), "--log-dir", str(directory / f"logs-{name}")
    log = directory / f"{name}.log"
    with psrt(log, "launch", str(job), *given, *flags, **variables) as running:
        yield running


def kill_all(running: Running) -> None:
    """SIGKILL for the launcher and all its children, the launcher first."""
    pid = running.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    for each in (pid, *map(int, children)):
        os.kill(each, signal.SIGKILL)
    running.process.wait(LONG_S)


def await_cut(cuts: Path) -> None:
    eventually(lambda: complete_cuts(directory_at(cuts)), "a complete cut", LONG_S)


def killed_job(directory: Path, mode: str, trainers: int, data: str = "") -> Path:
    """A job of two pservers that was killed in an epoch, with a cut in `cuts`."""
    job = write_counting_job(directory, ROWS, mode, EPOCHS, every=100, data=data)
    cuts = directory / "cuts"
    with launched(job, "killed", trainers, 2, "--checkpoint-dir", str(cuts)) as running:
        await_cut(cuts)
        kill_all(running)
    assert not (directory / "killed").exists()
    return job


def counts_after(job: Path, name: str, trainers: int, pservers: int, *flags: str) -> list[float]:
    """The counts at the end of a job that goes on from the latest cut."""
    cuts = shutil.copytree(job.parent / "cuts", job.parent / f"cuts-{name}")
    given = "--checkpoint-dir", str(cuts), "--resume", "latest", *flags
    with launched(job, name, trainers, pservers, *given) as resumed:
        code = resumed.exit_code(LONG_S)
    assert code == 0, resumed.output
    logs = [p.read_text() for p in (job.parent / f"logs-{name}").glob("trainer.*.log")]
    assert len(logs) == trainers
    assert all("resumed cut" in log for log in logs)
    return counts_in(job.parent / name, EXAMPLES)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return killed_job(tmp_path_factory.mktemp("killed"), "async", 2, "shuffle_seed = 3")


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("trainers", "pservers", "mode"),
    [(3, 2, "half_async"), (3, 3, "async"), (1, 2, "ssp"), (2, 3, "async")],
)
def test_each_example_is_trained_once_an_epoch(
    killed: Path, trainers: int, pservers: int, mode: str
) -> None:
    name = f"{mode}-{trainers}-{pservers}"

    counts = counts_after(killed, name, trainers, pservers, "--mode", mode)

    assert counts == [EPOCHS] * EXAMPLES


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_job_whose_data_were_dealt_again_can_be_killed_again(killed: Path) -> None:
    cuts = shutil.copytree(killed.parent / "cuts", killed.parent / "cuts-again")
    first = complete_cuts(directory_at(cuts))[-1]
    flags = "--checkpoint-dir", str(cuts), "--resume", "latest"
    with launched(killed, "again", 3, 2, *flags) as running:
        eventually(lambda: complete_cuts(directory_at(cuts))[-1] > first, "a further cut", LONG_S)
        kill_all(running)
    assert not (killed.parent / "again").exists()

    with launched(killed, "in-the-end", 2, 1, *flags) as resumed:
        code = resumed.exit_code(LONG_S)

    assert code == 0, resumed.output
    assert counts_in(killed.parent / "in-the-end", EXAMPLES) == [EPOCHS] * EXAMPLES


@pytest.mark.long
@pytest.mark.timeout(400)
def test_three_trainers_of_sync_become_one(tmp_path: Path) -> None:
    job = killed_job(tmp_path, "sync", 3)
    job.write_text(job.read_text().replace(f"epochs = {EPOCHS}", "epochs = 1"))

    counts = counts_after(job, "one", 1, 1)

    alone, of_three = 1.0, pytest.approx(1 / 3)
    assert [count for count in counts if count not in (alone, of_three)] == []
    assert counts.count(of_three) > 0


@pytest.mark.long
@pytest.mark.timeout(400)
def test_an_interrupted_job_goes_on_where_its_latest_cut_was(tmp_path: Path) -> None:
    job = write_counting_job(tmp_path, ROWS, "async", EPOCHS, every=100)
    cuts = tmp_path / "cuts"
    with launched(job, "interrupted", 2, 2, "--checkpoint-dir", str(cuts)) as running:
        await_cut(cuts)
        running.process.send_signal(signal.SIGINT)
        code = running.exit_code(LONG_S)
    assert code == 130, running.output

    assert counts_after(job, "resumed", 3, 1) == [EPOCHS] * EXAMPLES


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_job_of_another_name_or_geo_does_not_resume(killed: Path) -> None:
    flags = "--checkpoint-dir", str(killed.parent / "cuts"), "--resume", "latest"

    with launched(killed, "geo", 1, 1, *flags, "--mode", "geo") as geo:
        geo_code = geo.exit_code(LONG_S)
    with launched(killed, "named", 1, 1, *flags, PSRT_JOB_NAME="other") as named:
        named_code = named.exit_code(LONG_S)

    failed = CATALOGUE[ErrorCode.CHILD_FAILED].exit_code
    assert (geo_code, named_code) == (failed, failed)
    assert "is of mode Async, this job of mode Geo" in geo.output
    assert "is of job 'counting', this one is 'other'" in named.output
