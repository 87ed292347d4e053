"""Losses that are infinite or no number: the setting `on_nan` of `psrt trainer`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psrt.core.errors import CATALOGUE, ErrorCode
from psrt.trainer.models import load
from tests.support.processes import psrt
from tests.support.pserver import daemon
from tests.support.small_job import BATCH, TABLE, lines, write_files

STEPS = 6
HUGE = "3e38"
"""Its square, and most products with a weight, are infinite."""


def batches_of(steps: int) -> list[list[str]]:
    text = lines(steps * BATCH, seed=3)
    return [text[at : at + BATCH] for at in range(0, len(text), BATCH)]


def spoiled(batch: list[str]) -> list[str]:
    """A batch whose last line has a number that is too large to compute with."""
    return [*batch[:-1], f"1 1 2 7 107 2 {HUGE} -{HUGE}\n"]


def job_of(directory: Path, batches: list[list[str]], mode: str = "sync") -> Path:
    """A job whose program squares its floats."""
    job = write_files(directory, [[line for batch in batches for line in batch]], mode)
    program = directory / "program.py"
    squared = program.read_text().replace("[pooled, x]", "[pooled, layers.square(x)]")
    program.write_text(squared)
    return job


def train(directory: Path, batches: list[list[str]], *flags: str) -> tuple[int, str, Any]:
    """Exit code, output and report of a training with `flags`."""
    job = job_of(directory, batches)
    outputs = "--save", str(directory / "model"), "--report", str(directory / "report.json")
    with psrt(directory / "log", "trainer", *flags, *outputs, str(job)) as trainer:
        code, report = trainer.exit_code(), directory / "report.json"
        return code, trainer.output, json.loads(report.read_text()) if report.exists() else {}


def values_of(directory: Path) -> list[np.ndarray]:
    model = load(directory / "model")
    rows = model.pull_rows({TABLE: np.arange(150)})
    return [*(values for _, values in sorted(model.dense.items())), rows[TABLE]]


def test_training_ends_at_a_loss_that_is_not_finite_and_names_the_op(tmp_path: Path) -> None:
    good = batches_of(STEPS)
    code, output, _ = train(tmp_path / "a", [*good[:3], spoiled(good[3]), *good[4:]], "--local")

    assert code == CATALOGUE[ErrorCode.NOT_FINITE].exit_code == 12
    assert "The loss of a step is not finite. The step failed in " in output
    assert "program.py" in output, "the line of the user's program"
    assert not (tmp_path / "a/model").exists()


def test_a_rate_that_is_too_high_ends_training_too(tmp_path: Path) -> None:
    with daemon(tmp_path) as pserver:
        job = write_files(tmp_path, [lines(60 * BATCH, seed=1)])
        program = tmp_path / "program.py"
        program.write_text(
            program.read_text().replace("Adagrad(learning_rate=0.1)", "Sgd(learning_rate=1e30)")
        )
        where = "--endpoints", pserver.endpoint, "--save", str(tmp_path / "model")
        with psrt(tmp_path / "log", "trainer", *where, str(job)) as trainer:
            assert trainer.exit_code() == 12

    assert "NOT_FINITE" in trainer.output
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("replicas", [1, 2])
def test_with_skip_a_step_counts_as_if_its_examples_were_not_there(
    tmp_path: Path, replicas: int
) -> None:
    good, flags = batches_of(STEPS), ("--local", "--on-nan", "skip", "--cpu-num", str(replicas))

    code, output, report = train(tmp_path / "a", [*good[:3], spoiled(good[0]), *good[3:]], *flags)
    train(tmp_path / "b", good, *flags)

    assert code == 0
    assert (report["steps"], report["skipped_steps"]) == (STEPS, 1)
    assert "warning: a step is left out: " in output
    assert "  1 step left out" in output
    for left, right in zip(values_of(tmp_path / "a"), values_of(tmp_path / "b"), strict=True):
        assert left.tobytes() == right.tobytes()


@pytest.mark.parametrize("mode", ["sync", "async", "geo"])
def test_with_skip_no_pserver_gets_a_gradient_of_the_step(tmp_path: Path, mode: str) -> None:
    good = batches_of(STEPS)
    job = job_of(tmp_path, [*good[:3], spoiled(good[3]), *good[4:]], mode)
    with daemon(tmp_path) as pserver:
        where = "--endpoints", pserver.endpoint, "--save", str(tmp_path / "model")
        flags = "--on-nan", "skip"
        with psrt(tmp_path / "log", "trainer", *where, *flags, str(job)) as trainer:
            assert trainer.exit_code() == 0, trainer.output

    assert all(np.isfinite(values).all() for values in values_of(tmp_path))


def test_with_continue_the_loss_is_shown_and_the_model_saved_with_a_warning(tmp_path: Path) -> None:
    good = batches_of(STEPS)
    flags = "--local", "--on-nan", "continue"
    code, output, _ = train(tmp_path / "a", [*good[:3], spoiled(good[3]), *good[4:]], *flags)

    assert code == 0
    assert "  loss nan" in output
    assert "warning: the model is not finite: parameter " in output
    assert (tmp_path / "a/model").exists()
