"""A job that trains in seconds and still has everything: a sparse table, dense floats, an AUC."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

BATCH = 32
TABLE = "slot_embeddings_0.w_0"
TABLE_ROWS = 100
TEST_ROWS = 1000
PROGRAM = """
import psrt
from psrt import layers

def build():
    click = layers.data("click", shape=(1,))
    ids = layers.data("ids", shape=(1,), dtype="int64", ragged=True)
    x = layers.data("x", shape=(2,))
    pooled = layers.slot_embeddings([ids], size=(1000, 4))
    logit = layers.fc(layers.concat([pooled, x], axis=1), 1)
    loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, click))
    optimizer = psrt.optimizer.Adagrad(learning_rate=0.1)
    return psrt.Model(loss, logit, click, optimizer, prediction_is="logit")
"""
JOB = """
[job]
name = "small"
program = "program.py"
[data]
train = ["train-*"]
test = ["test-*"]
batch_size = {batch}
epochs = {epochs}
[communication]
mode = "{mode}"
[trainer]
log_every_s = 0.1
"""


def lines(rows: int, seed: int) -> list[str]:
    """Clicks drawn from a logistic model of the parity of an id and of one float."""
    random = np.random.default_rng(seed)
    ids, x = random.integers(0, 50, rows), random.normal(size=(rows, 2)).round(3)
    logits = np.where(ids % 2 == 0, 2.0, -2.0) + x[:, 0]
    clicks = (random.random(rows) < 1 / (1 + np.exp(-logits))).astype(int)
    return [
        f"1 {click} 2 {i} {i + 100} 2 {a} {b}\n"
        for click, i, (a, b) in zip(clicks, ids, x, strict=True)
    ]


def write_files(
    directory: Path,
    train: Sequence[Sequence[str]],
    mode: str = "sync",
    *,
    batch: int = BATCH,
    epochs: int = 1,
) -> Path:
    """Program, data and job file in `directory`; the path of the job file."""
    directory.mkdir(exist_ok=True)
    job = directory / "job.toml"
    (directory / "program.py").write_text(PROGRAM)
    job.write_text(JOB.format(mode=mode, batch=batch, epochs=epochs))
    for number, text in enumerate(train):
        (directory / f"train-{number}").write_text("".join(text))
    (directory / "test-0").write_text("".join(lines(TEST_ROWS, seed=99)))
    return job
