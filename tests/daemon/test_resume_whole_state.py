"""A resumed job has everything that outlives a step: random numbers, rates, counters, statistics.

The reference is one job that makes cuts while it trains; another begins with a cut of the middle.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psrt.pserver.checkpoints import complete_cuts, find_cut
from psrt.storage.locate import directory_at
from tests.support.processes import psrt
from tests.support.saved_models import model_of
from tests.support.small_job import BATCH, lines, write_files

PROGRAM = """
import psrt
from psrt import layers

def build():
    click = layers.data("click", shape=(1,))
    ids = layers.data("ids", shape=(1,), dtype="int64", ragged=True)
    x = layers.data("x", shape=(2,))
    table = psrt.tables.TableOptions(admission=psrt.tables.CountFilter(3))
    pooled = layers.slot_embeddings([ids], size=(1000, 4), param=psrt.Param(table=table))
    hidden = layers.batch_norm(layers.fc(layers.concat([pooled, x], axis=1), 8))
    logit = layers.fc(layers.dropout(hidden, 0.3), 1)
    loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, click))
    rate = psrt.optimizer.ExponentialDecay(0.05, decay_steps=7, decay_rate=0.9)
    metrics = {"running_auc": layers.auc(logit, click, from_logits=True)}
    return psrt.Model(
        loss, logit, click, psrt.optimizer.Adam(rate), prediction_is="logit", metrics=metrics
    )
"""
EPOCHS, STEPS = 3, 40  # of a trainer: an epoch has two files of 20 steps


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("whole-state")
    texts = [lines(BATCH * STEPS // 2, seed=n) for n in range(4)]
    path = write_files(directory, texts, epochs=EPOCHS)
    (directory / "program.py").write_text(PROGRAM)
    path.write_text(path.read_text().replace("[data]", "[data]\nshuffle_seed = 4"))
    section = "\n[pserver]\ncheckpoint_every_steps = 10\ncheckpoint_keep = 100\n"
    path.write_text(path.read_text() + section)
    return path


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(1, id="one executor", marks=pytest.mark.long),
        pytest.param(2, id="replicas"),
    ],
)
def replicas(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def whole(job: Path, replicas: int) -> Path:
    """The results of the reference, with its cuts below `cuts`."""
    return launched(job, f"whole-{replicas}", replicas)


def launched(job: Path, name: str, replicas: int, *flags: str) -> Path:
    """Train; returns the directory of the model, the reports and the cuts."""
    directory = job.parent / name
    paths = {"save": "model", "log-dir": "logs", "checkpoint-dir": "cuts"}
    given = [text for flag, part in paths.items() for text in (f"--{flag}", f"{directory / part}")]
    directory.mkdir(exist_ok=True)
    arguments = ("launch", str(job), *given, "--cpu-num", str(replicas), *flags)
    with psrt(directory / "log", *arguments) as running:
        assert running.exit_code() == 0, running.output
    return directory


def results_of(directory: Path) -> Iterator[dict[str, Any]]:
    """Reports of the trainers: sums of the last epoch, and of the test."""
    for path in sorted((directory / "logs").glob("trainer.*.report.json")):
        report = json.loads(path.read_text())
        yield {n: report.get(n) for n in ("loss", "train_auc", "metrics", "test_loss", "auc")}


def cut_in_epoch(cuts: Path, epoch: int) -> int:
    """The number of the last cut with every trainer within an epoch."""
    found, directory = 0, directory_at(cuts)
    for number in complete_cuts(directory):
        positions = find_cut(directory, str(number)).manifest["positions"]
        texts = [text for text in positions.values() if text != "completed"]
        epochs = [json.loads(text)["epoch"] for text in texts]
        found = number if epochs == [epoch] * len(positions) else found
    assert found, f"no cut in epoch {epoch}"
    return found


@pytest.mark.parametrize("epoch", [pytest.param(1, marks=pytest.mark.long), EPOCHS])
def test_a_resumed_job_ends_with_the_bits_of_one_that_was_not_interrupted(
    job: Path, whole: Path, replicas: int, epoch: int
) -> None:
    number = cut_in_epoch(whole / "cuts", epoch)
    name = f"resumed-{epoch}-{replicas}"
    shutil.copytree(whole / "cuts", job.parent / name / "cuts")

    resumed = launched(job, name, replicas, "--resume", str(number))

    expected, found = model_of(whole / "model"), model_of(resumed / "model")
    assert expected.keys() == found.keys()
    assert [name for name in expected if not np.array_equal(expected[name], found[name])] == []
    assert list(results_of(resumed)) == list(results_of(whole))
