"""`psrt launch`: a cluster for one job, on this host or by an engine on others."""

from __future__ import annotations

from typing import Any

import click

from psrt.cli import results
from psrt.cli.options import job_options, options_of
from psrt.config.load import load
from psrt.config.sections import LaunchConfig
from psrt.core.process import note
from psrt.launch import launching
from psrt.launch.plan import SCRIPT

_EPILOG = """\b
Examples:
  psrt launch ctr_dnn.toml                      2 pservers, 2 trainers
  psrt launch --mode async --epochs 3 --report run.json ctr_dnn.toml
  psrt launch --batch-size 256 --set job.params.rate=0.05 --set trainer.on_nan=skip ctr_dnn.toml
  psrt launch --pservers 1 --trainers 1 --save model/ ctr_dnn.toml
  psrt launch --dry-run ctr_dnn.toml            print the commands, start nothing
  psrt launch --trainers 2 train.py -- --epochs 3   ranks of a script, and pservers
  psrt launch --mode collective train.py        ranks without pservers
  psrt launch --on ssh --hosts a:2,b:2 ctr_dnn.toml
  psrt launch --on slurm --slurm '--time=4:00:00' ctr_dnn.toml
"""


@click.command(epilog=_EPILOG)
@options_of(LaunchConfig)
@job_options("batch_size")
@click.option("--dry-run", is_flag=True, help="Print what would be started, and start nothing.")
@click.argument("arguments", nargs=-1, metavar="[-- ARGUMENTS]")
def launch(dry_run: bool, arguments: tuple[str, ...], **flags: Any) -> int:
    """Run a job or a script on a cluster.

    Starts pservers, then trainers, on this host or --on another engine, and prints the progress of
    trainer 0. Every process has its own log in --log-dir. If a process fails, psrt stops the others
    and prints the end of its log. Ctrl-C stops all processes; a second Ctrl-C kills them at once.

    A train.py runs as under Python, with ARGUMENTS, once for each trainer. It finds its rank by the
    variables of torchrun and of PaddlePaddle, and the pservers by psrt.torch.connect(), psrt.init
    or role makers.
    """
    has_script = flags["job"].endswith(SCRIPT)
    if arguments and not has_script:
        raise click.UsageError(f"{flags['job']} takes no arguments: {' '.join(arguments)}")
    loaded = load(LaunchConfig, flags=flags, file="" if has_script else flags["job"])
    say = results.write if dry_run else note
    return launching.run(loaded, say=say, dry_run=dry_run, arguments=arguments)
