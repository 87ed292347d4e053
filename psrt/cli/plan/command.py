"""`psrt plan`: prints the placement of a job's parameters, or the size of its cluster."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import click

from psrt.cli import results
from psrt.cli.options import options_of
from psrt.config.load import load, load_job
from psrt.config.sections import JobConfig, PlanConfig, SizeConfig

_EPILOG = """\b
Examples:
  psrt plan --endpoints 10.0.0.1:6170,10.0.0.2:6170 ctr_dnn.toml
  psrt plan --endpoints a:6170,b:6170,c:6170 --format json ctr_dnn.toml
  PSRT_PARTITION_MIN_BLOCK_SIZE=65536 psrt plan --endpoints a:6170,b:6170 ctr_dnn.toml
  psrt plan --size --trainers 32 --examples-per-s 12000 ctr_dnn.toml
  psrt plan --size --rows slot_embeddings_0.w_0=2G --pserver-memory 128GiB ctr_dnn.toml
  psrt plan --size --sample 32 --trainers 8 --steps-per-s 20 --pservers 4 ctr_dnn.toml
"""


@click.command(epilog=_EPILOG)
@options_of(PlanConfig)
@options_of(SizeConfig)
def plan(**flags: Any) -> None:
    """Show the placement of parameters on pservers, or the number of pservers a job needs.

    Runs build() of the job. Starts nothing and calls no pserver, so endpoints may be made up. A
    dense parameter is cut into blocks, one per line: its pserver, its offset in the parameter, and
    its number of elements. A sparse table is divided by virtual shards. The last table is the total
    of each pserver; a line that begins with ! is a warning.

    If a pserver holds far more than others, lower min_block_size in [partition] to cut smaller
    parameters too, or try split_method = "HashName". Pservers refuse trainers whose plan has
    another hash.

    With --size it shows the resources: memory of the fullest pserver, part by part; bytes that one
    trainer sends and receives in a step, by call; and, once a speed is given, requests and traffic
    per second. Without --pservers and --endpoints it finds the least number of pservers with enough
    memory, bandwidth and cores, and names the limit that decides. The options from --trainers on
    describe the cluster; they may be set in [size] of the job file.
    docs/how-to/size-a-cluster.md explains the arithmetic and its accuracy.
    """
    names = {field.name for field in dataclasses.fields(PlanConfig)}
    of_plan = {name: value for name, value in flags.items() if name in names}
    of_size = {name: value for name, value in flags.items() if name not in names}
    settings = load(PlanConfig, flags=of_plan, file=flags["job"]).config
    cluster = load(SizeConfig, flags=of_size, file=flags["job"]).config
    config = load_job(flags["job"]).config
    results.write(
        _size(config, settings, cluster) if settings.size else _placement(config, settings)
    )


def _placement(config: JobConfig, settings: PlanConfig) -> str:
    # Imported late: numba takes a second, and a mistake in a flag is reported without it.
    from psrt.partition import placement
    from psrt.sizing import concerns
    from psrt.trainer.inputs import load_job as build

    placed = build(config).plan(settings.endpoints)
    warnings = list(concerns.of_plan(placed))
    if settings.format == "json":
        facts = {"job": config.name, "mode": config.mode, **placement.to_plain(placed)}
        return json.dumps({**facts, "warnings": warnings}, indent=2)
    pservers = f"{len(placed.endpoints)} pserver{'s' if len(placed.endpoints) > 1 else ''}"
    title = f"job {config.name}, mode {config.mode}, {pservers}, plan {placed.hash()[:12]}"
    text = [title, placement.to_text(placed), *(f"! {warning}" for warning in warnings)]
    return "\n\n".join(text)


def _size(config: JobConfig, settings: PlanConfig, cluster: SizeConfig) -> str:
    from psrt.cli.plan import use
    from psrt.cli.plan.size import to_plain, to_text
    from psrt.sizing.sizing import size
    from psrt.trainer.inputs import load_job as build

    job = build(config)
    workload, limits = use.workload_of(job, cluster), use.limits_of(cluster)
    endpoints = settings.endpoints or _made_up(cluster.pservers)
    found = size(
        lambda pservers: job.plan(endpoints or _made_up(pservers)), workload, limits, len(endpoints)
    )
    if settings.format == "json":
        facts = {"job": config.name, "mode": config.mode, **to_plain(found)}
        return json.dumps(facts, indent=2)
    batch = cluster.batch or config.data.batch_size
    trainers = f"{cluster.trainers} trainer{'s' if cluster.trainers > 1 else ''}"
    title = f"job {config.name}, mode {config.mode}, {trainers} with steps of {batch:,} examples"
    speed = f", {workload.steps_per_s:.3g} of them a second" if workload.steps_per_s else ""
    return f"{title}{speed}\n\n{to_text(found)}"


def _made_up(pservers: int) -> tuple[str, ...]:
    return tuple(f"pserver-{number}:6170" for number in range(pservers))
