"""`psrt config`: all settings, their values, and the origin of each value."""

from __future__ import annotations

from typing import Any

import click

from psrt.cli import results
from psrt.config import render
from psrt.config.host_files import SECTIONS as HOST_SECTIONS
from psrt.config.load import load, load_job
from psrt.config.sections import (
    LaunchConfig,
    PlanConfig,
    PredictConfig,
    PserverConfig,
    SizeConfig,
    TrainerConfig,
)

_SHOW_EPILOG = """\b
Examples:
  psrt config show                         values from the environment and defaults
  psrt config show --origin ctr_dnn.toml   values for a job, with their origins
"""
_PROCESSES: dict[str, type[Any]] = {
    "pserver": PserverConfig,
    "trainer": TrainerConfig,
    "launch": LaunchConfig,
    "plan": PlanConfig,
    "size": SizeConfig,
    "predict": PredictConfig,
}


@click.group()
def config() -> None:
    """Show settings and where they come from.

    The value of a setting comes from its flag, else the environment, else the TOML file, else (of
    pservers and trainers) the files of the host in /etc/psrt, else its default.
    """


@config.command(epilog=_SHOW_EPILOG)
@click.option(
    "--origin",
    is_flag=True,
    help="Print the origin of each value: flag, variable, file or default.",
)
@click.argument("job", metavar="[JOB.toml]", default="", type=click.Path())
def show(origin: bool, job: str) -> None:
    """Print the values of all settings, as TOML.

    With JOB.toml, also those of the job.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    if job:
        loaded_job = load_job(job)
        values |= render.job_values(loaded_job.config)
        origins |= loaded_job.origins
    for section, cls in _PROCESSES.items():
        loaded = load(cls, file=job, with_host=section in HOST_SECTIONS)
        values |= render.section_values(section, loaded.config)
        origins |= loaded.origins
    results.write(render.show(values, origins if origin else {}), nl=False)


@config.command(epilog="\b\nExample:\n  psrt config reference > my.toml")
def reference() -> None:
    """Print a TOML file with every setting, its meaning and its default."""
    results.write(render.reference(), nl=False)
