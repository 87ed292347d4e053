"""`psrt trainer`: settings and a job file in, one trainer process that trains, or tests a model."""

from __future__ import annotations

from typing import Any

import click

from psrt.cli.options import options_of
from psrt.config.load import load, load_job
from psrt.config.schema import TrainerConfig
from psrt.core import log

_EPILOG = """\b
Examples:
  psrt trainer --local examples/fit_a_line/fit_a_line.toml   train here, no pserver needed
  psrt trainer --endpoints 127.0.0.1:6170 examples/ctr_dnn/ctr_dnn.toml
  psrt trainer --endpoints a:6170,b:6170 --trainers 2 --trainer-id 1 ctr_dnn.toml
  psrt trainer --endpoints a:6170,b:6170 --save model/ --report run.json ctr_dnn.toml
  psrt trainer --evaluate model/ ctr_dnn.toml   test a saved model, no pserver needed
"""


@click.command(epilog=_EPILOG)
@options_of(TrainerConfig)
def trainer(**flags: Any) -> int:
    """Run one trainer of the job described by JOB.toml.

    It waits for the pservers, trains on its share of the files (file i belongs to trainer i modulo
    the number of trainers) and completes. Trainer 0 then tests on the held-back files and, with
    --save, writes the model. SIGTERM or Ctrl-C ends it cleanly after the running step: exit 143 or
    130, nothing is tested or saved.

    With --local there are no pservers: this one trainer holds all parameters and updates them, and
    everything else (data, progress, test, --save, --report, signals) is the same.
    """
    settings = load(TrainerConfig, flags=flags, file=flags["job"]).config
    job = load_job(flags["job"]).config
    log.configure(f"trainer-{settings.trainer_id}", settings.log_level)
    # Only now: importing numba takes a second, which a mistake in a flag should not.
    from psrt.trainer import saved_session, session

    run = saved_session.test_saved if settings.evaluate else session.train
    return run(settings, job, click.echo)
