"""A job that counts: the row of an example's id is the number of times it was trained.

Each example has an id of its own. Its gradient is -1, SGD has the rate 1, and rows begin at 0. In
`sync` an example counts 1/n, n being the trainers that took part in its round.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

BATCH = 8
TABLE = "counts"
PROGRAM = """
import psrt
from psrt import layers

def build():
    ids = layers.data("ids", shape=(1,), dtype="int64")
    zero = psrt.Param("counts", initializer=psrt.initializer.Constant(0.0))
    count = layers.embedding(ids, (1, 1), is_sparse=True, is_distributed=True, param=zero)
    loss = layers.scale(layers.reduce_sum(count), -1.0)
    return psrt.Model(loss, optimizer=psrt.optimizer.Sgd(1.0))
"""
JOB = """
[job]
name = "counting"
program = "program.py"
[data]
train = ["train-*"]
batch_size = {batch}
epochs = {epochs}
{data}
[communication]
mode = "{mode}"
[pserver]
checkpoint_every_steps = {every}
"""


def write_counting_job(
    directory: Path, rows: Sequence[int], mode: str, epochs: int, every: int, data: str = ""
) -> Path:
    """Program, files of `rows` examples and job file in `directory`; the path of the job file.

    A cut is made every `every` steps. `data` are further lines of the section `[data]`.
    """
    directory.mkdir(exist_ok=True)
    first = 0
    for number, count in enumerate(rows):
        text = "".join(f"1 {first + i}\n" for i in range(count))
        (directory / f"train-{number}").write_text(text)
        first += count
    (directory / "program.py").write_text(PROGRAM)
    job = directory / "job.toml"
    job.write_text(JOB.format(batch=BATCH, epochs=epochs, mode=mode, every=every, data=data))
    return job


def counts_in(model: Path, examples: int) -> list[float]:
    """The count of each example in a saved model, by id; 0 for those that have no row."""
    counts = np.zeros(examples)
    for ids in (model / "sparse").glob("*.ids.npy"):
        counts[np.load(ids)] = np.load(str(ids).replace(".ids.", ".rows."))[:, 0]
    return counts.tolist()
