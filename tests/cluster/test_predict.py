"""From a cluster to predictions: what `psrt launch --save` wrote predicts what was tested."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from psrt.kernels import jit
from psrt.pserver.process import daemon
from psrt.trainer.sessions import session
from tests.support.processes import psrt
from tests.support.small_job import BATCH, TEST_ROWS, lines, write_files


@pytest.fixture(autouse=True, scope="module")
def kernels_are_compiled() -> None:
    """Those of pservers and trainers: the processes started here have deadlines."""
    assert daemon
    assert session
    jit.warm_up()


@pytest.mark.slow
def test_predictions_of_a_saved_model_have_the_loss_that_training_reported(tmp_path: Path) -> None:
    job = write_files(tmp_path / "job", [lines(60 * BATCH, seed=n) for n in range(2)])
    model, report = tmp_path / "model", tmp_path / "report.json"
    saving = "--save", str(model), "--report", str(report), "--log-dir", str(tmp_path / "logs")

    with psrt(tmp_path / "launch.log", "launch", *saving, str(job)) as launch:
        assert launch.exit_code() == 0, launch.output
    out, data = tmp_path / "scores", job.parent / "test-0"
    with psrt(tmp_path / "log", "predict", "--out", str(out), str(model), str(data)) as predict:
        assert predict.exit_code() == 0, predict.output

    clicks = np.array([line.split()[1] for line in data.read_text().splitlines()], float)
    scores = np.array(out.read_text().split(), float)
    assert len(scores) == TEST_ROWS
    loss = -np.mean(np.log(np.where(clicks == 1, scores, 1 - scores)))
    tested = json.loads(report.read_text())["trainers"][0]
    assert loss == pytest.approx(tested["test_loss"], rel=1e-4)
