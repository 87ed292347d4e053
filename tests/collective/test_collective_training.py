"""Trainers without pservers, as real processes over gloo: what they learn, and how they end."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from psrt.trainer.models.saved_model import SavedModel, load
from tests.support.groups import group
from tests.support.processes import ROOT, psrt
from tests.support.scripts import check_all_succeeded, endpoints, run_all
from tests.support.small_job import PROGRAM, lines, write_files

pytest.importorskip("torch", reason="the extra torch is not installed")

JOB = """
[job]
name = "agreement"
program = "{program}"
seed = 3
[job.params]
{params}
[data]
train = ["train-*"]
batch_size = {batch}
[communication]
mode = "collective"
bucket_kib = 64
"""


def mnist(directory: Path) -> Path:
    """The perceptron of examples/mnist on noise; the trainers have 5 and 3 batches, 1 is short."""
    rng = np.random.default_rng(1)
    for number, rows in enumerate((5 * 16, 3 * 16 - 5)):
        pixels, labels = rng.random((rows, 784)).round(2), rng.integers(0, 10, rows)
        text = [
            f"784 {' '.join(map(str, row))} 1 {label}\n"
            for row, label in zip(pixels, labels, strict=True)
        ]
        (directory / f"train-{number}").write_text("".join(text))
    return written(directory, "mnist/mnist.py", 'net = "mlp"\nlearning_rate = 0.01', 16)


def ctr_dnn(directory: Path) -> Path:
    """The network of examples/ctr_dnn; the trainers share some ids of its table, not all."""
    rng = np.random.default_rng(2)
    for number, rows in enumerate((6 * 32, 4 * 32)):
        text = []
        for click in rng.integers(0, 2, rows):
            numbers = " ".join(map(str, rng.normal(size=13).round(3)))
            ids = (rng.zipf(1.3, 26) % 1000 + 1000 * np.arange(26)).tolist()
            text.append(f"1 {click} 13 {numbers} {' '.join(f'1 {i}' for i in ids)}\n")
        (directory / f"train-{number}").write_text("".join(text))
    params = 'hidden = [64, 32]\noptimizer = "adagrad"\nlearning_rate = 0.05'
    return written(directory, "ctr_dnn/ctr_dnn.py", params, 32)


def written(directory: Path, program: str, params: str, batch: int) -> Path:
    path = directory / "job.toml"
    at = ROOT / "examples" / program
    path.write_text(JOB.format(program=at, params=params, batch=batch))
    return path


@pytest.mark.parametrize("job_of", [mnist, ctr_dnn])
def test_two_processes_learn_what_sync_learns_on_pservers(
    job_of: Callable[[Path], Path], tmp_path: Path
) -> None:
    job, model = job_of(tmp_path), tmp_path / "model"
    with group(job, tmp_path / "logs", 2, save=model) as trainers:
        assert [each.exit_code() for each in trainers] == [0, 0]
    synced = tmp_path / "synced"
    flags = "--mode", "sync", "--save", str(synced), "--log-dir", str(tmp_path / "launch")
    with psrt(tmp_path / "launch.log", "launch", *flags, str(job)) as launch:
        assert launch.exit_code() == 0

    ours, theirs = load(model), load(synced)
    assert ours.dense.keys() == theirs.dense.keys()
    for name, values in theirs.dense.items():
        np.testing.assert_allclose(ours.dense[name], values, atol=1e-6, err_msg=name)
    for table in theirs.manifest.sparse:
        check_rows(ours, theirs, table)


def check_rows(ours: SavedModel, theirs: SavedModel, table: str) -> None:
    ids = {table: np.arange(27_000, dtype=np.int64)}
    assert ours.manifest.rows(table) == theirs.manifest.rows(table) > 0
    np.testing.assert_allclose(ours.pull_rows(ids)[table], theirs.pull_rows(ids)[table], atol=1e-6)


SCRIPT = ROOT / "tests" / "collective" / "fluid_script.py"


def test_a_fluid_program_leaves_equal_bits_on_all_ranks_under_any_launcher(tmp_path: Path) -> None:
    host, port = endpoints(1)[0].split(":")
    at = {"MASTER_ADDR": host, "MASTER_PORT": port}
    variables = {
        "trainer-0": {**at, "RANK": "0", "WORLD_SIZE": "2"},
        "trainer-1": {**at, "SLURM_PROCID": "1", "SLURM_NTASKS": "2"},
    }

    ended = run_all(tmp_path, [str(SCRIPT)], variables)

    check_all_succeeded(ended)
    results = {each.output.splitlines()[-1] for each in ended.values()}
    assert len(results) == 1, results


def test_a_killed_trainer_ends_the_other_with_its_name(tmp_path: Path) -> None:
    job = write_files(tmp_path, [lines(32, 1), lines(32, 2)], "collective", epochs=100_000)
    with group(job, tmp_path / "logs", 2, "--call-timeout-s", "20") as (first, second):
        first.wait_for("epoch ")
        second.process.send_signal(signal.SIGKILL)

        assert first.exit_code(60) != 0

    assert "TRAINER_LOST" in first.output
    assert "trainer 1 left, or does not answer" in first.output


def test_a_trainer_that_was_asked_to_end_is_named_with_its_reason(tmp_path: Path) -> None:
    job = write_files(tmp_path, [lines(32, 1), lines(32, 2)], "collective", epochs=100_000)
    with group(job, tmp_path / "logs", 2) as (first, second):
        first.wait_for("epoch ")
        second.process.send_signal(signal.SIGTERM)

        assert [second.exit_code(60), first.exit_code(60) != 0] == [143, True]

    assert "trainer 1 (it was asked to end) left" in first.output


def test_a_group_waits_for_all_and_names_who_is_missing_or_trains_something_else(
    tmp_path: Path,
) -> None:
    job = write_files(tmp_path, [lines(32, 1), lines(32, 2)], "collective")
    with group(job, tmp_path / "alone", 2, "--connect-timeout-s", "2") as (first, second):
        second.process.kill()
        assert first.exit_code(60) != 0
    assert "trainer 1 did not come to 127.0.0.1:" in first.output

    other = tmp_path / "other"
    changed = write_files(other, [lines(32, 1), lines(32, 2)], "collective")
    (other / "program.py").write_text(PROGRAM.replace("(1000, 4)", "(1000, 5)"))
    at = ("--trainer-endpoints", endpoints(1)[0], "--trainers", "2", "--trainer-id")
    with (
        psrt(tmp_path / "0.log", "trainer", *at, "0", str(job)) as first,
        psrt(tmp_path / "1.log", "trainer", *at, "1", str(changed)) as second,
    ):
        assert 0 not in (first.exit_code(60), second.exit_code(60))
    assert "trainer 1 and trainer 0 train different programs" in first.output


def test_a_launch_without_pservers_starts_trainers_with_paddles_variables(tmp_path: Path) -> None:
    job = write_files(tmp_path, [lines(64, 1), lines(64, 2)], "collective")
    logs = tmp_path / "logs"

    with psrt(tmp_path / "out", "launch", "--log-dir", str(logs), str(job)) as launch:
        assert launch.exit_code() == 0

    assert "started 2 trainers without pservers" in launch.output
    assert {path.name for path in logs.glob("*.log")} == {"trainer.0.log", "trainer.1.log"}
    devices = ("--selected-devices", "0,1,2", "--dry-run", str(job))
    with psrt(tmp_path / "dry", "launch", *devices) as dry:
        assert dry.exit_code() == 0
    commands = dry.output.strip().splitlines()
    assert [line.split("--device ")[1].split()[0] for line in commands] == ["0", "1", "2"]
