"""`psrt plan`: a job file and endpoints in, the placement of its parameters out."""

from __future__ import annotations

import json
from typing import Any

import click

from psrt.cli.options import options_of
from psrt.config.load import load, load_job
from psrt.config.schema import PlanConfig

_EPILOG = """\b
Examples:
  psrt plan --endpoints 10.0.0.1:6170,10.0.0.2:6170 ctr_dnn.toml
  psrt plan --endpoints a:6170,b:6170,c:6170 --format json ctr_dnn.toml
  PSRT_PARTITION_MIN_BLOCK_SIZE=65536 psrt plan --endpoints a:6170,b:6170 ctr_dnn.toml
"""


@click.command(epilog=_EPILOG)
@options_of(PlanConfig)
def plan(**flags: Any) -> None:
    """Show which pserver would hold what.

    Runs build() of the job; nothing is started and no pserver is asked, so endpoints may be made
    up. A dense parameter is cut into blocks, one to a line: which pserver holds it, where it begins
    in the parameter, and how many elements it has. A sparse table is shared by its virtual shards.
    The last table is what each pserver holds in all.

    If a pserver holds far more than its share, lower min_block_size in [partition] to cut smaller
    parameters too, or try split_method = "HashName". Trainers whose plan has another hash are
    refused by pservers.
    """
    settings = load(PlanConfig, flags=flags, file=flags["job"]).config
    config = load_job(flags["job"]).config
    # Only now: importing numba takes a second, which a mistake in a flag should not.
    from psrt.partition import placement
    from psrt.trainer.job import load_job as build

    placed = build(config).plan(settings.endpoints)
    if settings.format == "json":
        facts = {"job": config.name, "mode": config.mode, **placement.to_plain(placed)}
        click.echo(json.dumps(facts, indent=2))
        return
    pservers = f"{len(placed.endpoints)} pserver{'s' if len(placed.endpoints) > 1 else ''}"
    click.echo(f"job {config.name}, mode {config.mode}, {pservers}, plan {placed.hash()[:12]}\n")
    click.echo(placement.to_text(placed))
