"""Tests a saved model on a job's held-back files; no pserver takes part."""

from __future__ import annotations

import time
from pathlib import Path

from psrt.config.sections import JobConfig, TrainerConfig
from psrt.core.errors import ConfigError
from psrt.executor.memory import Scope
from psrt.trainer import report
from psrt.trainer.inputs import batches, load_job
from psrt.trainer.measuring import evaluate
from psrt.trainer.models import check_fits, load
from psrt.trainer.training.local_parameters import fill_untrained
from psrt.trainer.training.process import Say, prepared_process


def test_saved(settings: TrainerConfig, config: JobConfig, say: Say) -> int:
    """Load `settings.evaluate`, test it, report; returns the exit code of the process."""
    report.check_target(settings.report)
    directory = Path(settings.evaluate)
    started = time.monotonic()
    with prepared_process(settings, say):
        job = load_job(config)
        model = load(directory)
        check_fits(job.program, model, directory)
        files = batches.test_files(job)
        if not files:
            raise ConfigError(
                f"job {config.name} names no test files.",
                hint='Add test = ["data/test-*"] to [data] of the job file.',
            )
        scope = Scope()
        fill_untrained(scope, job.program)
        for name, values in model.dense.items():
            scope[name] = values
        tested = evaluate.test(job, scope, batches.feed(job, files), model)
    say(f"test  {tested.examples:,} examples  {tested.text()}")
    facts = {"job": config.name, "model": str(directory), "seconds": time.monotonic() - started}
    summary = evaluate.summary(tested)
    report.write(settings.report, {**facts, **summary, "auc": summary["test_auc"]})
    return 0
