"""Training without pservers: the same numbers, the same report, the same saved model."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import numpy as np
import pytest

from psrt.config.load import load_job
from psrt.config.sections import JobConfig, TrainerConfig
from psrt.core.errors import ConfigError
from psrt.kernels import jit
from psrt.trainer.models.saved_model import SavedModel, load
from psrt.trainer.sessions import command
from psrt.trainer.sessions.saved_session import test_saved as evaluate_saved
from tests.cluster.test_train_evaluate import run_trainers
from tests.support.processes import psrt
from tests.support.small_job import BATCH, PROGRAM, TABLE, TABLE_ROWS, lines, write_files

WHOLE = "is_distributed=False"
KINDS = {
    "distributed": "is_distributed=True",
    "sparse": WHOLE,
    "dense": f"is_sparse=False, {WHOLE}",
}


@pytest.fixture(autouse=True, scope="module")
def kernels_are_compiled() -> None:
    jit.warm_up()


def write_job(directory: Path, rows: int, kind: str = "sparse", epochs: int = 1) -> JobConfig:
    job = write_files(directory, [lines(rows, seed=1)], epochs=epochs)
    declared = PROGRAM.replace("(1000, 4)", f"(1000, 4), {KINDS[kind]}")
    (directory / "program.py").write_text(declared)
    return load_job(str(job), environ={}).config


def train_locally(
    config: JobConfig, directory: Path, cpu_num: int = 1
) -> tuple[dict[str, object], SavedModel]:
    model, report = directory / "local-model", directory / "local-report.json"
    settings = TrainerConfig(local=True, cpu_num=cpu_num, save=str(model), report=str(report))
    assert command.train(settings, config, print) == 0
    return json.loads(report.read_text()), load(model)


def test_local_training_learns_what_was_planted(tmp_path: Path) -> None:
    report, model = train_locally(write_job(tmp_path, 6000), tmp_path)

    assert report["mode"] == "local"
    assert report["examples"] == 6000
    assert report["test_examples"] == 1000
    assert report["test_auc"] > 0.86  # type: ignore[operator]  # the planted model reaches 0.91
    assert model.manifest.rows(TABLE) == TABLE_ROWS


@pytest.mark.parametrize("kind", KINDS)
def test_local_training_equals_one_trainer_in_a_synchronous_cluster(
    tmp_path: Path, kind: str
) -> None:
    config = write_job(tmp_path, 40 * BATCH + 7, kind, epochs=2)

    local, own = train_locally(config, tmp_path)
    (clustered,) = run_trainers(config, 1, save=str(tmp_path / "model"))

    theirs, ids = load(tmp_path / "model"), {TABLE: np.arange(160, dtype=np.int64)}
    for key in ("steps", "examples", "test_examples"):
        assert local[key] == clustered[key]
    for key in ("loss", "train_auc", "test_loss", "test_auc"):
        assert local[key] == pytest.approx(clustered[key], abs=1e-6)
    for name, values in theirs.dense.items():
        np.testing.assert_allclose(own.dense[name], values, atol=1e-6)
    if kind != "dense":
        assert own.manifest.rows(TABLE) == theirs.manifest.rows(TABLE)
        np.testing.assert_allclose(
            own.pull_rows(ids)[TABLE], theirs.pull_rows(ids)[TABLE], atol=1e-6
        )


@pytest.mark.parametrize("kind", KINDS)
def test_replicas_share_the_batches_of_one_trainer(tmp_path: Path, kind: str) -> None:
    config = write_job(tmp_path, 40 * BATCH + 7, kind)

    alone, expected = train_locally(config, tmp_path)
    shared, model = train_locally(config, tmp_path, cpu_num=3)

    assert shared["steps"] == alone["steps"]
    for key in ("loss", "train_auc", "test_loss", "test_auc"):
        assert shared[key] == pytest.approx(alone[key], abs=1e-5)
    for name, values in expected.dense.items():
        np.testing.assert_allclose(model.dense[name], values, atol=1e-5)


def test_negatives_of_a_sparse_table_are_drawn_before_its_rows_are_fetched(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    pairs = [(int(word), int(word) ^ 1) for word in rng.integers(0, 50, 3000)]
    (tmp_path / "train.txt").write_text("".join(f"1 {a} 1 {b}\n" for a, b in pairs))
    (tmp_path / "program.py").write_text(
        "import psrt\nfrom psrt import layers\ndef build(is_distributed):\n"
        "    a = layers.data('a', dtype='int64')\n    b = layers.data('b', dtype='int64')\n"
        "    rows = layers.embedding(a, (50, 8), True, is_distributed)\n"
        "    cost = layers.negative_sampling_loss(layers.flatten(rows), b, 50, is_sparse=True,\n"
        "        is_distributed=is_distributed, num_neg_samples=3)\n"
        "    return psrt.Model(layers.mean(cost), optimizer=psrt.optimizer.Adagrad(0.5))\n"
    )
    job = tmp_path / "job.toml"

    losses = {}
    for distributed in ("true", "false"):
        job.write_text(
            f'[job]\nname = "pairs"\nprogram = "program.py"\n[job.params]\n'
            f"is_distributed = {distributed}\n[data]\n"
            f'train = ["train.txt"]\nbatch_size = 50\nepochs = 10\n'
        )
        config = load_job(str(job), environ={}).config
        settings = TrainerConfig(local=True, report=str(tmp_path / "report.json"))
        assert command.train(settings, config, print) == 0
        losses[distributed] = json.loads((tmp_path / "report.json").read_text())["loss"]
    (clustered,) = run_trainers(config, 1)

    assert losses["true"] < 1.6  # of 4 · ln 2 = 2.77 at the start
    assert losses["true"] == pytest.approx(losses["false"], abs=1e-5)
    assert losses["true"] == pytest.approx(clustered["loss"], abs=1e-5)


@pytest.mark.parametrize("dropout", [False, True])
def test_a_model_saved_locally_tests_as_it_did_in_training(tmp_path: Path, dropout: bool) -> None:
    config = write_job(tmp_path, 2000)
    if dropout:  # left on in a test, it would draw other masks each time
        program = (tmp_path / "program.py").read_text()
        dropped = program.replace("fc(layers.concat", "fc(dropped(layers.concat")
        dropped = dropped.replace("axis=1), 1)", "axis=1)), 1)")
        (tmp_path / "program.py").write_text(
            "def dropped(x):\n    return layers.dropout(x, 0.5)\n" + dropped
        )
    trained, _ = train_locally(config, tmp_path)
    again = tmp_path / "again.json"

    settings = TrainerConfig(evaluate=str(tmp_path / "local-model"), report=str(again))
    code = evaluate_saved(settings, config, print)

    tested = json.loads(again.read_text())
    assert code == 0
    assert tested["test_loss"] == pytest.approx(trained["test_loss"], abs=1e-6)
    assert tested["test_auc"] == pytest.approx(trained["test_auc"], abs=1e-6)


def test_a_signal_ends_local_training_after_a_step_and_saves_nothing(tmp_path: Path) -> None:
    write_job(tmp_path, 2000, epochs=100_000)
    model, report = tmp_path / "model", tmp_path / "report.json"
    flags = "--local", "--save", str(model), "--report", str(report)

    with psrt(tmp_path / "log", "trainer", *flags, str(tmp_path / "job.toml")) as trainer:
        trainer.wait_for("step ")
        trainer.process.send_signal(signal.SIGTERM)
        code = trainer.exit_code()

    assert code == 143, trainer.output
    assert json.loads(report.read_text())["stopped_by_signal"] == signal.SIGTERM
    assert not model.exists()


@pytest.mark.parametrize("others", [{"trainers": 2}, {"endpoints": ("127.0.0.1:6170",)}])
def test_local_and_cluster_settings_exclude_each_other(others: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="local is set, but so are other trainers"):
        TrainerConfig(local=True, **others)  # type: ignore[arg-type]
