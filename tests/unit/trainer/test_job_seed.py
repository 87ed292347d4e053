"""`[job] seed`: the same program from other initial values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from psrt.config.load import load_job as read_job
from psrt.executor.memory.scope import Scope
from psrt.trainer.inputs.job import Job, load_job

PROGRAM = """
import psrt
from psrt import layers

def build():
    x = layers.data("x", shape=(4,), dtype="float32")
    return psrt.Model(layers.mean(layers.fc(x, 3)), optimizer=psrt.optimizer.Sgd(0.1))
"""


@pytest.fixture
def job_file(tmp_path: Path) -> str:
    (tmp_path / "line.py").write_text(PROGRAM)
    path = tmp_path / "job.toml"
    path.write_text('[job]\nprogram = "line.py"\n')
    return str(path)


def built(job_file: str, **environ: str) -> Job:
    return load_job(read_job(job_file, environ=environ).config)


def weights(job: Job) -> np.ndarray:
    scope = Scope()
    scope.init_parameters(job.program)
    return scope["fc_0.w_0"]


def test_another_seed_gives_other_initial_values(job_file: str) -> None:
    first, second = (built(job_file, PSRT_JOB_SEED=seed) for seed in ("1", "2"))

    assert not np.allclose(weights(first), weights(second))


def test_the_same_seed_gives_the_same_initial_values(job_file: str) -> None:
    first, second = (built(job_file, PSRT_JOB_SEED="7") for _ in range(2))

    np.testing.assert_array_equal(weights(first), weights(second))


def test_the_seed_is_0_where_none_is_given(job_file: str) -> None:
    np.testing.assert_array_equal(
        weights(built(job_file)), weights(built(job_file, PSRT_JOB_SEED="0"))
    )
