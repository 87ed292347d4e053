"""Pages of a script that trains by connected executors: `psrt trainer --metrics … train.py`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from psrt.communicator.base import Communicator
from psrt.core.specs import MODES
from psrt.partition.transpiler import TrainerProgram
from psrt.trainer.observing import watchers_of_script
from psrt.trainer.training.training_run import TrainingRun


def watch_script(part: TrainerProgram, run: TrainingRun, communicator: Communicator) -> None:
    """Show the training of this executor, if the script has pages; the newest one counts."""
    mode = next(name for name, kind in MODES.items() if isinstance(part.mode, kind))
    labels = part.job_id, mode, str(part.trainer_id)
    watchers = watchers_of_script()
    watchers.begin(labels, run.spans, communicator, partial(_numbers, run))
    watchers.ready(lambda: f"{run.steps} steps")


def _numbers(run: TrainingRun) -> Mapping[str, float | None]:
    """Counts alone: a script decides itself what its loss is."""
    return {"steps": run.steps, "examples": run.examples, "epoch": None, "loss": None, "auc": None}
