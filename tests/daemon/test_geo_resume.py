"""A Geo job that was killed goes on from its latest cut, and trains on every example once."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from psrt.core.errors import CATALOGUE, ErrorCode
from psrt.pserver.checkpoints import complete_cuts, find_cut
from psrt.storage.locate import directory_at
from tests.daemon.test_resume import launched, model_of
from tests.support.carriers import eventually
from tests.support.processes import DEADLINE_S
from tests.support.small_job import BATCH, write_files

EPOCHS, BATCHES, WIDTH = 8, 60, 4
COUNTING = f"""
import psrt
from psrt import layers

def build():
    click = layers.data("click", shape=(1,))
    ids = layers.data("ids", shape=(1,), dtype="int64", ragged=True)
    x = layers.data("x", shape=(2,))
    rows = layers.slot_embeddings(
        [ids], size=(100000, {WIDTH}), param=psrt.Param(initializer=psrt.initializer.Constant(0.0))
    )
    logit = layers.fc(x, 1)
    loss = layers.mean(layers.concat([rows, logit, click], axis=1))
    return psrt.Model(loss, logit, click, psrt.optimizer.Sgd(learning_rate=1.0))
"""
SECTIONS = """
[pserver]
checkpoint_every_steps = 40
"""


def counting_job(directory: Path) -> Path:
    """Every example has a row of its own, which moves by one number whenever it is trained."""
    trainers = [
        [f"1 0 1 {first + i} 2 0 0\n" for i in range(BATCH * BATCHES)] for first in (1, 50_001)
    ]
    job = write_files(directory, trainers, "geo", epochs=EPOCHS)
    (directory / "program.py").write_text(COUNTING)
    job.write_text(job.read_text().replace('"geo"', '"geo"\nupdate_frequency = 5') + SECTIONS)
    return job


def has_state_of_both(cuts: Path) -> bool:
    directory = directory_at(cuts)
    if not complete_cuts(directory):
        return False
    cut = find_cut(directory, "latest")
    return all(cut.state_page(trainer, 0) is not None for trainer in range(2))


@pytest.mark.long
def test_every_example_of_a_killed_job_counts_once(tmp_path: Path) -> None:
    job, cuts = counting_job(tmp_path), tmp_path / "cuts"
    flags = "--trainers", "2", "--checkpoint-dir", str(cuts)
    with launched(job, "killed", 2, *flags) as killed:
        eventually(lambda: has_state_of_both(cuts), "a cut with both trainers", DEADLINE_S)
        for pserver in range(2):
            ready = json.loads(
                (tmp_path / "logs-killed" / f"pserver.{pserver}.ready.json").read_text()
            )
            os.kill(ready["pid"], signal.SIGKILL)
        assert killed.exit_code() == CATALOGUE[ErrorCode.CHILD_FAILED].exit_code
    cut = find_cut(directory_at(cuts), "latest")
    steps = [json.loads(cut.position_of(trainer))["steps"] for trainer in range(2)]

    report = tmp_path / "report.json"
    flags = *flags, "--resume", "latest", "--report", str(report)
    with launched(job, "resumed", 2, *flags) as resumed:
        code = resumed.exit_code()

    assert code == 0, resumed.output
    told = json.loads(report.read_text())
    assert told["examples"] + BATCH * sum(steps) == 2 * EPOCHS * BATCHES * BATCH
    found = model_of(tmp_path / "resumed")
    rows = {name: row for name, row in found.items() if name.startswith("row ")}
    assert len(rows) == 2 * BATCHES * BATCH
    once = np.float32(1.0 / (BATCH * (WIDTH + 2)))
    for name, row in rows.items():
        np.testing.assert_allclose(row, -EPOCHS * once, rtol=1e-5, err_msg=name)
