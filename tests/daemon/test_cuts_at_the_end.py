"""Cuts at the end of a job, on signals, and before processes end: with real processes."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from psrt.pserver.checkpoints import SavedCut, complete_cuts, find_cut
from psrt.storage.locate import directory_at
from tests.support.carriers import eventually
from tests.support.processes import DEADLINE_S, Running, psrt
from tests.support.saved_models import model_of
from tests.support.small_job import BATCH, lines, write_files

STEPS = 30  # of a trainer in an epoch
EPOCHS, FOREVER = 25, 1000


def written_job(directory: Path, mode: str = "sync", epochs: int = EPOCHS) -> Path:
    texts = [lines(BATCH * STEPS, seed=n) for n in range(2)]
    return write_files(directory, texts, mode, epochs=epochs)


@contextmanager
def launched(job: Path, name: str, *flags: str) -> Iterator[Running]:
    directory = job.parent / name
    directory.mkdir()
    logs = "--log-dir", str(directory / "logs")
    cuts = "--checkpoint-dir", str(job.parent / "cuts")
    with psrt(directory / "log", "launch", str(job), *logs, *cuts, *flags) as running:
        yield running


def logs_of(job: Path, name: str) -> dict[str, str]:
    return {p.stem: p.read_text() for p in sorted((job.parent / name / "logs").glob("*.log"))}


def ready(job: Path, name: str, pserver: int) -> dict[str, object]:
    facts = (job.parent / name / "logs" / f"pserver.{pserver}.ready.json").read_text()
    return dict(json.loads(facts))


def newest(job: Path) -> SavedCut:
    return find_cut(directory_at(job.parent / "cuts"), "latest")


def steps_of(cut: SavedCut) -> list[tuple[int, int]]:
    """Epoch and steps of each trainer."""
    texts = cut.manifest["positions"].values()
    return [(found["epoch"], found["steps"]) for found in map(json.loads, texts)]


def wait_for_training(running: Running) -> None:
    running.wait_for("ex/s")


def wait_for_all(job: Path, name: str) -> None:
    """Until both trainers have trained some steps."""
    logs = [job.parent / name / "logs" / f"trainer.{n}.log" for n in range(2)]
    eventually(
        lambda: all(log.exists() and "ex/s" in log.read_text() for log in logs),
        "steps of all trainers",
        DEADLINE_S,
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """The model of a job in Sync that was not interrupted."""
    job = written_job(tmp_path_factory.mktemp("whole"))
    with launched(job, "whole", "--save", str(job.parent / "model")) as whole:
        assert whole.exit_code() == 0, whole.output
    return model_of(job.parent / "model")


def resume(job: Path, whole: dict[str, np.ndarray], *flags: str) -> str:
    """Go on with the newest cut; asserts the bits of the whole job. Returns the output."""
    model = job.parent / "resumed-model"
    with launched(job, "resumed", "--resume", "latest", "--save", str(model), *flags) as resumed:
        assert resumed.exit_code() == 0, resumed.output
    found = model_of(model)
    assert found.keys() == whole.keys()
    assert [name for name in whole if not np.array_equal(whole[name], found[name])] == []
    return resumed.output


@pytest.mark.long
def test_a_job_that_has_trained_ends_with_a_cut_and_goes_on_from_it_for_more_epochs(
    tmp_path: Path, whole: dict[str, np.ndarray]
) -> None:
    job = written_job(tmp_path, epochs=2)

    with launched(job, "first") as first:
        assert first.exit_code() == 0, first.output
    cut = newest(job)
    resume(job, whole, "--epochs", str(EPOCHS))

    assert steps_of(cut) == [(3, 2 * STEPS)] * 2
    assert steps_of(newest(job)) == [(EPOCHS + 1, EPOCHS * STEPS)] * 2


def test_without_checkpoint_at_end_a_job_ends_without_a_cut(tmp_path: Path) -> None:
    job = written_job(tmp_path, epochs=1)
    job.write_text(job.read_text() + "\n[pserver]\ncheckpoint_at_end = false\n")

    with launched(job, "first") as first:
        assert first.exit_code() == 0, first.output

    assert complete_cuts(directory_at(tmp_path / "cuts")) == []


@pytest.mark.long
def test_an_interrupted_launch_goes_on_with_the_bits_of_one_that_was_not(
    tmp_path: Path, whole: dict[str, np.ndarray]
) -> None:
    job = written_job(tmp_path)

    with launched(job, "first") as first:
        wait_for_training(first)
        first.process.send_signal(signal.SIGINT)
        assert first.exit_code() == 128 + signal.SIGINT, first.output
    (epoch, steps), other = steps_of(newest(job))
    output = resume(job, whole)

    assert "leaves at cut 1" in first.output
    assert other == (epoch, steps)
    assert f"resumed cut 1 in epoch {epoch} after {steps:,} steps" in output


@pytest.mark.long
@pytest.mark.parametrize("mode", ["async", "ssp", "half_async"])
def test_an_interrupted_launch_ends_with_a_cut_in_the_other_modes(
    tmp_path: Path, mode: str
) -> None:
    job = written_job(tmp_path, mode, epochs=FOREVER)

    with launched(job, "first") as first:
        wait_for_all(job, "first")
        first.process.send_signal(signal.SIGTERM)
        assert first.exit_code() == 128 + signal.SIGTERM, first.output

    assert complete_cuts(directory_at(tmp_path / "cuts")) == [1], logs_of(job, "first")
    assert all(steps > 0 for _, steps in steps_of(newest(job)))


@pytest.mark.parametrize("to", [pytest.param("pserver 1", marks=pytest.mark.long), "launch"])
def test_sigusr1_makes_a_cut_while_training_goes_on(tmp_path: Path, to: str) -> None:
    job = written_job(tmp_path, epochs=FOREVER)

    with launched(job, "first") as first:
        wait_for_training(first)
        at = to.split()
        pid = (
            first.process.pid
            if to == "launch"
            else int(str(ready(job, "first", int(at[1]))["pid"]))
        )
        os.kill(pid, signal.SIGUSR1)
        directory = directory_at(tmp_path / "cuts")
        eventually(lambda: complete_cuts(directory) == [1], "the cut", DEADLINE_S)
        asked = "pserver.1" if to == "pserver 1" else "pserver.0"
        eventually(lambda: "asked for by SIGUSR1" in logs_of(job, "first")[asked], "a log line")
        assert first.process.poll() is None
        first.process.kill()


def test_a_pserver_makes_a_cut_before_sigterm_ends_it(tmp_path: Path) -> None:
    job = written_job(tmp_path, epochs=FOREVER)

    with launched(job, "first") as first:
        wait_for_training(first)
        os.kill(int(str(ready(job, "first", 1)["pid"])), signal.SIGTERM)
        assert first.exit_code() != 0

    assert complete_cuts(directory_at(tmp_path / "cuts"))
    assert "asks for a cut before it ends" in logs_of(job, "first")["pserver.1"]


def test_a_pserver_whose_trainer_is_gone_says_that_it_ends_without_a_cut(tmp_path: Path) -> None:
    job, log = written_job(tmp_path, epochs=FOREVER), tmp_path / "pserver.log"
    ready_file = tmp_path / "ready.json"
    flags = "--port", "0", "--checkpoint-dir", str(tmp_path / "cuts")
    with psrt(log, "pserver", *flags, "--ready-file", str(ready_file)) as pserver:
        pserver.wait_for("ready on")
        endpoint = json.loads(ready_file.read_text())["endpoint"]
        one = "--endpoints", endpoint, "--trainers", "1", str(job)
        with psrt(tmp_path / "trainer.log", "trainer", *one) as trainer:
            wait_for_training(trainer)
            trainer.process.kill()
            trainer.process.wait()
        pserver.process.send_signal(signal.SIGTERM)
        assert pserver.exit_code() == 0

    assert "it ends without a cut: no cut was made: trainer 0 left" in pserver.output
