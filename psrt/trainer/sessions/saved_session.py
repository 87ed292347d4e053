"""Tests a saved model on a job's held-back files; no pserver takes part."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from psrt.config.sections import JobConfig, TrainerConfig
from psrt.core.errors import ConfigError
from psrt.core.types import Array
from psrt.data.sources import DataFile
from psrt.executor.memory import Scope
from psrt.graph.program import Program
from psrt.trainer import report
from psrt.trainer.inputs import Job, batches, load_job
from psrt.trainer.measuring import Tally, evaluate
from psrt.trainer.models import check_fits, load
from psrt.trainer.training import Say, fill_untrained, prepared_process


def test_saved(settings: TrainerConfig, config: JobConfig, say: Say) -> int:
    """Load `settings.evaluate`, test it, report; returns the exit code of the process."""
    report.check_target(settings.report)
    directory = Path(settings.evaluate)
    started = time.monotonic()
    with prepared_process(settings, say):
        job = load_job(config)
        files = batches.test_files(job)
        if not files:
            raise ConfigError(
                f"job {config.name} names no test files.",
                hint='Add test = ["data/test-*"] to [data] of the job file.',
            )
        tested = tested_model(job, directory, files)
    say(f"test  {tested.examples:,} examples  {tested.text()}")
    facts = {"job": config.name, "model": str(directory), "seconds": time.monotonic() - started}
    summary = evaluate.summary(tested)
    report.write(settings.report, {**facts, **summary, "auc": summary["test_auc"]})
    return 0


def tested_model(job: Job, directory: Path, files: Sequence[DataFile]) -> Tally:
    """Test the saved model of a directory on `files`; raises `DataError` if it does not fit."""
    model = load(directory)
    check_fits(job.program, model, directory)
    scope = scope_of(job.program, model.dense)
    return evaluate.test(job, scope, batches.feed(job, files), model)


def scope_of(program: Program, dense: Mapping[str, Array]) -> Scope:
    """A scope of its own for a test, with these dense parameters."""
    scope = Scope()
    fill_untrained(scope, program)
    for name, values in dense.items():
        scope[name] = values
    return scope
