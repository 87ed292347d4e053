"""`psrt trainer`: one trainer process, which trains a job or tests a saved model.

A Python file in place of the job file runs as a script: `psrt.cli.script`.
"""

from __future__ import annotations

import logging
from typing import Any

import click

from psrt.cli import results
from psrt.cli.options import job_options, options_of
from psrt.cli.script import SUFFIX, run_script
from psrt.cli.service import reporter_of
from psrt.config import roles
from psrt.config.load import environment, load, load_job
from psrt.config.sections import TrainerConfig
from psrt.core import log
from psrt.core.process import note, write_stacks_on_request
from psrt.observe.traces import traces

_EPILOG = """\b
Examples:
  psrt trainer --local examples/fit_a_line/fit_a_line.toml   train here, no pserver needed
  psrt trainer --endpoints 127.0.0.1:6170 examples/ctr_dnn/ctr_dnn.toml
  psrt trainer --endpoints a:6170,b:6170 --trainers 2 --trainer-id 1 ctr_dnn.toml
  psrt trainer --endpoints a:6170,b:6170 --save model/ --report run.json ctr_dnn.toml
  PADDLE_PSERVERS_IP_PORT_LIST=a:6170,b:6170 PADDLE_TRAINERS_NUM=2 PADDLE_TRAINER_ID=1 \\
    psrt trainer ctr_dnn.toml                  as launchers of PaddlePaddle start it
  psrt trainer --local --state at.json job.toml      record the position in the data
  psrt trainer --local --resume at.json --state at.json job.toml       and continue behind it
  psrt trainer --local --epochs 3 --batch-size 256 --set job.params.rate=0.05 job.toml
  psrt trainer --evaluate model/ ctr_dnn.toml   test a saved model, no pserver needed
  psrt trainer --endpoints a:6170 --trainers 2 --trainer-id 1 train.py -- --epochs 3
"""


@click.command(epilog=_EPILOG)
@options_of(TrainerConfig)
@job_options("epochs", "batch_size")
@click.argument("arguments", nargs=-1, metavar="[-- ARGUMENTS]")
def trainer(arguments: tuple[str, ...], **flags: Any) -> int:
    """Run one trainer, of a job file or a script.

    With a JOB.toml, a trainer waits for the pservers, trains on its share of the files ([data]
    shard selects it; text files are cut if there are too few) and completes. Trainer 0 reads
    the test files before it begins; at the end it writes the model, with --save, and tests it.
    SIGTERM or Ctrl-C ends a trainer after the running step, with exit code 143 or 130, without
    model or test.

    With --local there are no pservers: this trainer holds and updates all parameters. Data,
    progress, test, --save, --report and signals work as in a cluster.

    A train.py runs as under Python, with ARGUMENTS. It gets the values of --endpoints, --trainers,
    --trainer-id and --cpu-num from psrt.init, role makers or the environment. The exit code is that
    of the script.
    """
    write_stacks_on_request()
    if flags["job"].endswith(SUFFIX):
        return run_script(flags.pop("job"), flags, arguments)
    if arguments:
        raise click.UsageError(f"{flags['job']} takes no arguments: {' '.join(arguments)}")

    def read() -> TrainerConfig:
        return load(TrainerConfig, flags=flags, file=flags["job"], with_host=True).config

    settings, job = read(), load_job(flags["job"]).config
    role = f"trainer-{settings.trainer_id}"
    log.configure(role, settings.log_level, form=settings.log_format)
    log.add_fields(job=job.name, trainer=settings.trainer_id)
    if warning := roles.contradiction(environment(), roles.TRAINER):
        logging.getLogger("psrt.cli").warning("%s; the command decides.", warning)
    # Imported here, because numba takes a second to load and a mistake in a flag should not.
    from psrt.trainer.sessions import command, saved_session

    if settings.evaluate:
        return saved_session.test_saved(settings, job, results.write)
    every, trainer = settings.trace_every, settings.trainer_id
    traced = traces("trainer", every > 0, environment(), every, job=job.name, trainer=trainer)
    with traced, reporter_of("trainer", role, settings, read) as reporter:
        return command.train(settings, job, note, reporter)
