"""Trainings of one side by `psrt launch`, and the accuracy of the models that they save."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.fluid_ctr import clicks, cpu_time
from benchmarks.fluid_ctr.settings import WIDTH, Settings
from benchmarks.measuring.harness import ONE_THREAD, Figures
from psrt.core.tensors import Ragged
from psrt.core.types import F64, I64, Array
from psrt.trainer.models import inference

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
EXAMPLE = ROOT / "examples" / "criteo"
TIMEOUT_S = 1800.0
ROWS = 512
"""Rows of one prediction."""


def fluid(settings: Settings, folder: Path, out: Path, zoo: Path | None = None) -> Figures:
    """Train through Fluid's API: the network of `network.py`, or that in a folder of the zoo."""
    command = [str(HERE / "worker.py"), "--", "--data", str(folder / clicks.FLUID)]
    command += ["--out", str(out), "--mode", settings.mode, "--rate", str(settings.rate)]
    command += ["--range", str(settings.range)]
    command += ["--batch", str(settings.batch), "--epochs", str(settings.epochs)]
    command += ["--update-frequency", str(settings.update_frequency)]
    _launch(settings, out, [*command, *(("--zoo", str(zoo)) if zoo else ())])
    found = [json.loads(path.read_text()) for path in out.glob("figures-*.json")]
    assert len(found) == settings.trainers
    return {
        "examples_per_s": round(sum(figures["examples_per_s"] for figures in found)),
        "cpu_us_per_example": found[0]["cpu_us_per_example"],
    }


def twin(settings: Settings, folder: Path, out: Path) -> Figures:
    """Train `examples/criteo/model_zoo.toml`: the same network in psrt's words."""
    params = {"learning_rate": settings.rate, "first_rows": settings.range, "distributed": "false"}
    callbacks: dict[str, object] = {
        "trainer.callbacks": "benchmarks.fluid_ctr.cpu_time:after_epoch"
    }
    found = _psrt(settings, folder, out, EXAMPLE / "model_zoo.toml", params, callbacks)
    return found | {"cpu_us_per_example": json.loads((out / "cpu.json").read_text())}


def criteo(settings: Settings, folder: Path, out: Path) -> Figures:
    """Train `examples/criteo/criteo.toml` with this width, rate and optimizer."""
    params = {"embedding": WIDTH, "optimizer": "adam"}
    rates = {"learning_rate": settings.rate, "embedding_rate": 1.0}
    return _psrt(settings, folder, out, EXAMPLE / "criteo.toml", params | rates, {})


def accuracy(model: Path, rows: dict[str, Array]) -> Figures:
    """Return AUC and log loss of a model on rows for tests, and the number of wrong certainties."""
    predictor = inference.load_inference_model(model)
    ids = _lists if predictor.program.vars["C1"].ragged else _columns
    starts = range(0, len(rows["click"]), ROWS)
    predicted = [
        predictor.run(
            {"dense_input": rows["dense"][at : at + ROWS], **ids(rows["ids"][at : at + ROWS])}
        )[0]
        for at in starts
    ]
    chance: F64 = np.concatenate([np.asarray(part)[:, -1] for part in predicted]).astype("f8")
    right = np.where(rows["click"] == 1, chance, 1 - chance)
    return {
        "auc": round(_auc(chance, rows["click"]), 5),
        "log_loss": round(float(-np.log(np.maximum(right, 1e-38)).mean()), 5),
        "impossible_rows": int((right == 0).sum()),
    }


def _psrt(
    settings: Settings,
    folder: Path,
    out: Path,
    job: Path,
    params: dict[str, object],
    others: dict[str, object],
) -> Figures:
    report = out / "report.json"
    values = {f"job.params.{name}": value for name, value in params.items()} | others
    values |= {
        "data.train": folder / clicks.PSRT / "train-*",
        "data.test": folder / clicks.PSRT / "test-*",
        "data.batch_size": settings.batch,
        "data.epochs": settings.epochs,
        "communication.mode": settings.mode,
    }
    if settings.mode == "geo":
        values["communication.update_frequency"] = settings.update_frequency
    flags = [word for name, value in values.items() for word in ("--set", f"{name}={value}")]
    flags += ["--save", str(out / "model"), "--report", str(report), str(job)]
    _launch(settings, out, flags)
    return {"examples_per_s": round(json.loads(report.read_text())["examples_per_s"])}


def _launch(settings: Settings, out: Path, words: list[str]) -> None:
    """Run `psrt launch`; raises `SystemExit` with its output if it fails."""
    command = [sys.executable, "-m", "psrt", "launch", "--log-dir", str(out / "logs")]
    command += ["--pservers", str(settings.pservers), "--trainers", str(settings.trainers)]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run(
        [*command, *words],
        env=os.environ | ONE_THREAD | {"PYTHONPATH": path, cpu_time.FILE: str(out / "cpu.json")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
    )
    if ran.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {ran.returncode}:\n{ran.stdout}")


def _lists(ids: I64) -> dict[str, Array | Ragged]:
    """A list of one id in each slot."""
    ends = np.arange(len(ids) + 1)
    return {f"C{at + 1}": Ragged(np.ascontiguousarray(c), ends) for at, c in enumerate(ids.T)}


def _columns(ids: I64) -> dict[str, Array | Ragged]:
    return {f"C{at + 1}": np.ascontiguousarray(c[:, None]) for at, c in enumerate(ids.T)}


def _auc(chance: F64, click: I64) -> float:
    """Return the area under the curve; rows of equal chance count half."""
    _, at, count = np.unique(chance, return_inverse=True, return_counts=True)
    ranks = np.cumsum(count) - (count - 1) / 2
    clicks_, others = int(click.sum()), int((1 - click).sum())
    above = float(ranks[at][click == 1].sum()) - clicks_ * (clicks_ + 1) / 2
    return above / (clicks_ * others)


SIDES: dict[str, Callable[[Settings, Path, Path], Figures]] = {
    "fluid": fluid,
    "twin": twin,
    "criteo": criteo,
}
