"""Validation while training goes on changes nothing; the best model is kept, and all end early."""

from __future__ import annotations

import json
import signal
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psrt.config.load import load_job
from psrt.config.sections import JobConfig, TrainerConfig, ValidationConfig
from psrt.core.errors import ConfigError, DataError, ProgramError
from psrt.kernels import jit
from psrt.trainer.inputs.job import load_job as load_built
from psrt.trainer.models.saved_model import SavedModel, load
from psrt.trainer.sessions import Session, command
from psrt.trainer.sessions.session_parts import cluster_for, run_of
from psrt.trainer.sessions.signals import StopSignals
from tests.cluster.test_train_evaluate import run_trainers
from tests.support.small_job import BATCH, TABLE, lines, write_files

NEVER_BETTER = ValidationConfig(patience=1, min_delta=10.0)


@pytest.fixture(autouse=True, scope="module")
def kernels_are_compiled() -> None:
    jit.warm_up()


def job_of(
    directory: Path,
    validation: ValidationConfig,
    *,
    epochs: int = 3,
    mode: str = "sync",
    trainers: int = 1,
) -> JobConfig:
    texts = [lines(10 * BATCH, seed=1 + number) for number in range(trainers)]
    config = load_job(str(write_files(directory, texts, mode, epochs=epochs)), environ={}).config
    (directory / "valid-0").write_text("".join(lines(200, seed=77)))
    data = replace(config.data, validation=("valid-*",))
    return replace(config, data=data, validation=validation)


def trained(config: JobConfig, directory: Path, name: str) -> tuple[dict[str, Any], SavedModel]:
    report, save = directory / f"{name}.json", directory / name
    settings = TrainerConfig(local=True, save=str(save), report=str(report))
    assert command.train(settings, config, print) == 0
    return json.loads(report.read_text()), load(save)


def bits(model: SavedModel) -> dict[str, bytes]:
    rows = model.pull_rows({TABLE: np.arange(160, dtype=np.int64)})[TABLE]
    return {name: values.tobytes() for name, values in model.dense.items()} | {
        TABLE: rows.tobytes()
    }


def test_validation_changes_no_bit_of_the_model(tmp_path: Path) -> None:
    config = job_of(tmp_path, ValidationConfig(every_steps=4))
    without = replace(config, data=replace(config.data, validation=()))

    report, model = trained(config, tmp_path, "with")
    plain, expected = trained(without, tmp_path, "without")

    assert bits(model) == bits(expected)
    assert [each["step"] for each in report["validations"]] == [4, 8, 12, 16, 20, 24, 28, 30]
    assert "validations" not in plain
    for key in ("loss", "train_auc", "test_loss", "test_auc", "steps"):
        assert report[key] == plain[key]


def test_the_model_of_the_best_validation_is_kept_and_tested(tmp_path: Path) -> None:
    """With `better` the wrong way round the first one is the best: it is another model."""
    config = job_of(tmp_path, ValidationConfig(metric="auc", better="lower", keep_best=True))

    report, model = trained(config, tmp_path, "best")

    best = report["best_validation"]
    assert best == min(report["validations"], key=lambda each: each["auc"])
    assert best["epoch"] < 3
    again = replace(config, data=replace(config.data, test=config.data.validation))
    settings = TrainerConfig(evaluate=str(tmp_path / "best"), report=str(tmp_path / "test.json"))
    assert command_test(settings, again) == pytest.approx(best["auc"], abs=1e-9)
    assert report["test_auc"] != trained(config_without(config), tmp_path, "last")[0]["test_auc"]
    assert model.manifest.rows(TABLE) > 0


def config_without(config: JobConfig) -> JobConfig:
    return replace(config, validation=ValidationConfig())


def command_test(settings: TrainerConfig, config: JobConfig) -> float:
    from psrt.trainer.sessions.saved_session import test_saved

    assert test_saved(settings, config, print) == 0
    return float(json.loads(Path(settings.report).read_text())["test_auc"])


@pytest.mark.parametrize("mode", ["sync", "async", "ssp", "half_async", "geo"])
def test_all_trainers_end_early(tmp_path: Path, mode: str) -> None:
    config = job_of(tmp_path, NEVER_BETTER, epochs=400, mode=mode, trainers=2)

    first, second = run_trainers(config, 2)

    assert first["ended_early"] is True
    assert len(first["validations"]) == 2
    assert first["epochs"] == 2
    assert 1 <= second["epochs"] < 400
    assert "validations" not in second


def test_a_bad_line_of_a_validation_file_costs_no_training(tmp_path: Path) -> None:
    config = job_of(tmp_path, ValidationConfig())
    (tmp_path / "valid-0").write_text("1 0.5 nonsense\n")

    with pytest.raises(DataError, match="valid-0"):
        trained(config, tmp_path, "model")


def test_settings_without_an_effect_are_refused(tmp_path: Path) -> None:
    config = job_of(tmp_path, ValidationConfig(patience=2))
    without = replace(config, data=replace(config.data, validation=()))
    with pytest.raises(ConfigError, match="names no validation files"):
        trained(without, tmp_path, "model")

    best = replace(config, validation=ValidationConfig(keep_best=True))
    with pytest.raises(ConfigError, match="no directory to keep a model in"):
        command.train(TrainerConfig(local=True), best, print)


def test_validation_changes_no_bit_of_a_model_that_pservers_hold(tmp_path: Path) -> None:
    config = job_of(tmp_path, ValidationConfig(every_steps=4))
    without = replace(config, data=replace(config.data, validation=()))

    run_trainers(config, 1, save=str(tmp_path / "with"))
    run_trainers(without, 1, save=str(tmp_path / "without"))

    assert bits(load(tmp_path / "with")) == bits(load(tmp_path / "without"))


def test_a_resumed_training_keeps_a_better_model_of_before(tmp_path: Path) -> None:
    """None is better by 10: only a first one that is compared with nothing would count."""
    best = ValidationConfig(metric="loss", keep_best=True)
    config, save = job_of(tmp_path, best, epochs=2), str(tmp_path / "model")
    settings = TrainerConfig(local=True, save=save, state=str(tmp_path / "state.json"))
    assert command.train(settings, config, print) == 0
    before = bits(load(Path(save)))

    longer = replace(config, data=replace(config.data, epochs=4))
    never = replace(longer, validation=replace(best, min_delta=10.0))
    said: list[str] = []
    again = replace(settings, resume=settings.state)
    assert command.train(again, never, said.append) == 0

    assert bits(load(Path(save))) == before
    assert any(line.startswith("goes on with the model in") for line in said)


def test_the_report_of_an_interruption_names_the_model_that_was_kept(tmp_path: Path) -> None:
    config = job_of(tmp_path, ValidationConfig(keep_best=True, every_steps=4))
    settings = TrainerConfig(local=True, save=str(tmp_path / "model"))
    job = load_built(config)
    with (
        closing(run_of(settings, job)) as run,
        closing(cluster_for(settings, job, run, print)) as cluster,
    ):
        said: list[str] = []
        session = Session(settings, job, run, cluster, said.append)
        session.train(StopSignals())
        session.leave(signal.SIGTERM)

    assert f"The model is complete in {settings.save}" in said[-1]


def test_a_resumed_training_keeps_its_patience_and_ends_with_the_same_bits(tmp_path: Path) -> None:
    config = job_of(tmp_path, replace(NEVER_BETTER, patience=3), epochs=9)
    whole, expected = trained(config, tmp_path, "whole")

    state = str(tmp_path / "state.json")
    shorter = replace(config, data=replace(config.data, epochs=2))
    assert command.train(TrainerConfig(local=True, state=state), shorter, print) == 0
    report, save = str(tmp_path / "resumed.json"), str(tmp_path / "resumed")
    settings = TrainerConfig(local=True, resume=state, state=state, save=save, report=report)
    assert command.train(settings, config, print) == 0
    resumed = json.loads(Path(report).read_text())

    assert [each["step"] for each in whole["validations"]] == [10, 20, 30, 40]
    assert [each["step"] for each in resumed["validations"]] == [30, 40]
    assert resumed["ended_early"] is True
    assert resumed["best_validation"] == whole["best_validation"]
    assert bits(load(Path(save))) == bits(expected)

    assert command.train(settings, config, print) == 0
    again = json.loads(Path(report).read_text())
    assert (again["steps"], again["ended_early"], again["validations"]) == (0, True, [])


def test_models_are_saved_at_intervals_and_are_whole(tmp_path: Path) -> None:
    config = job_of(tmp_path, ValidationConfig(), epochs=3)
    save = str(tmp_path / "model")
    settings = TrainerConfig(local=True, save=save, save_every_epochs=1, save_total_limit=2)

    assert command.train(settings, config, print) == 0

    found = sorted(path.name for path in tmp_path.glob("model*"))
    assert found == ["model", "model-step-20", "model-step-30"]
    assert bits(load(tmp_path / "model-step-30")) == bits(load(tmp_path / "model"))
    shorter = replace(config, data=replace(config.data, epochs=2))
    assert bits(load(tmp_path / "model-step-20")) == bits(trained(shorter, tmp_path, "two")[1])


def test_models_at_intervals_of_a_cluster_change_no_bit_of_it(tmp_path: Path) -> None:
    config = job_of(tmp_path, ValidationConfig(), trainers=2)

    run_trainers(config, 2, save=str(tmp_path / "plain"))
    run_trainers(config, 2, save=str(tmp_path / "model"), save_every_steps=10)

    assert bits(load(tmp_path / "model")) == bits(load(tmp_path / "plain"))
    assert [p.name for p in sorted(tmp_path.glob("model-*"))] == [
        f"model-step-{step}" for step in (10, 20, 30)
    ]


def test_intervals_without_a_directory_are_refused(tmp_path: Path) -> None:
    config = job_of(tmp_path, ValidationConfig())

    with pytest.raises(ConfigError, match="no directory to save to") as refused:
        command.train(TrainerConfig(local=True, save_every_steps=5), config, print)
    assert "DIR-step-N" in refused.value.hint


CALLBACKS = """
seen = []

def remember(epoch):
    seen.append((epoch.epoch, epoch.train.examples, epoch.valid and epoch.valid.examples))

def until_the_second(epoch):
    return epoch.epoch == 2

def fails(epoch):
    raise ValueError("of mine")
"""


def test_callbacks_of_a_job_file_get_each_epoch_and_end_the_training(tmp_path: Path) -> None:
    config = job_of(tmp_path, ValidationConfig(), epochs=5)
    (tmp_path / "calls_of_epochs.py").write_text(CALLBACKS)
    names = "calls_of_epochs:remember", "calls_of_epochs:until_the_second"
    said: list[str] = []

    settings = TrainerConfig(local=True, callbacks=names)
    assert command.train(settings, config, said.append) == 0

    seen = sys.modules["calls_of_epochs"].seen
    assert seen == [(1, 10 * BATCH, 200), (2, 10 * BATCH, 200)]
    assert "ends early: callback until_the_second returned True after epoch 2" in said

    with pytest.raises(ProgramError, match="callback fails of the job raised ValueError"):
        command.train(TrainerConfig(local=True, callbacks=["calls_of_epochs:fails"]), config, print)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nowhere_at_all:f", "cannot be imported"),
        ("json:dumbs", "has no such function"),
        ("json", "has no such function"),
    ],
)
def test_callbacks_that_are_not_there_are_refused(tmp_path: Path, name: str, why: str) -> None:
    config = job_of(tmp_path, ValidationConfig())

    with pytest.raises(ConfigError, match=why) as refused:
        command.train(TrainerConfig(local=True, callbacks=(name,)), config, print)
    assert "module:function" in refused.value.hint or "dumps" in refused.value.hint


def test_a_callback_ends_the_training_of_all_trainers(tmp_path: Path) -> None:
    config = job_of(tmp_path, ValidationConfig(), epochs=400, trainers=2)
    (tmp_path / "ends_at_once.py").write_text("def ends(epoch):\n    return True\n")

    first, second = run_trainers(config, 2, callbacks=("ends_at_once:ends",))

    assert first["epochs"] == 1
    assert second["epochs"] < 400
