"""Workload of a job for `psrt plan --size`: declared, or sampled from its data."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from psrt.config.sections import SizeConfig, stripes_for
from psrt.core.errors import ConfigError, DataError
from psrt.core.hints import did_you_mean
from psrt.core.quantities import bytes_per_s, count, size_bytes
from psrt.core.specs import SparseTableSpec
from psrt.sizing.loads import Workload
from psrt.sizing.sizing import Limits
from psrt.sizing.traffic import TableUse
from psrt.trainer.inputs import Job, feed, training_files


@dataclass(frozen=True)
class IdStatistics:
    """Ids of one table per step, distinct ones, and their growth (β of `TableUse`)."""

    ids: float
    distinct: float
    growth: float


def workload_of(job: Job, config: SizeConfig) -> Workload:
    """All trainers of the job, each with steps of `config.batch` examples."""
    batch = config.batch or job.config.data.batch_size
    if config.steps_per_s and config.examples_per_s:
        raise ConfigError(
            "steps_per_s and examples_per_s are both given.",
            hint="Give one of them: the other follows.",
        )
    steps_per_s = config.steps_per_s or config.examples_per_s / batch
    uses = tuple(uses_of(job, config, batch))
    mode, wire = job.config.communication, job.config.wire
    return Workload(mode, config.trainers, steps_per_s, uses, wire)


def limits_of(config: SizeConfig) -> Limits:
    return Limits(
        size_bytes(config.pserver_memory, "pserver_memory"),
        bytes_per_s(config.pserver_bandwidth, "pserver_bandwidth"),
        config.pserver_cores,
        config.stripes or stripes_for(config.pserver_cores),
    )


def uses_of(job: Job, config: SizeConfig, batch: int) -> list[TableUse]:
    """Use of each sparse table by one trainer."""
    specs = job.plan(["any:1"]).sparse
    names = [spec.name for spec in specs]
    rows, ids = _numbers("rows", config.rows, names), _numbers("ids", config.ids, names)
    seen = sampled(job, batch, config.sample) if config.sample else {}
    for spec in specs:
        rows.setdefault(spec.name, job.program.parameters[spec.name].shape[0])
        if spec.name not in seen:
            of_example = ids.get(spec.name) or _declared_ids(job, spec)
            total = of_example * batch
            seen[spec.name] = IdStatistics(total, total * config.distinct, config.growth)
    wire = job.config.wire
    return [_use(spec, rows[spec.name], seen[spec.name], wire.of(spec.name)) for spec in specs]


def sampled(job: Job, batch: int, batches: int) -> dict[str, IdStatistics]:
    """Statistics of the first `batches` batches of the training data, by table.

    Raises `DataError` if the data has no full batch.
    """
    data = dataclasses.replace(job.config.data, batch_size=batch)
    config = dataclasses.replace(job.config, data=data)
    job = dataclasses.replace(job, config=config)
    with contextlib.closing(feed(job, training_files(job, 0, 1))) as prepared:
        read = list(itertools.islice(prepared, batches))
    whole = [each for each in read if each.examples == batch]
    if not whole:
        raise DataError(
            f"the training data of job {config.name} has no {batch} examples to sample.",
            hint="Leave out --sample, or take a smaller --batch.",
        )
    return {
        table: _statistics(
            [sum(map(len, each.index[table].values())) for each in whole],
            [each.wanted[table] for each in whole],
        )
        for table in job.tables
    }


def _statistics(ids: Sequence[int], distinct: Sequence[np.ndarray]) -> IdStatistics:
    """β is fitted between one batch and all of them."""
    one = float(np.mean([len(each) for each in distinct]))
    everything = len(np.unique(np.concatenate(distinct)))
    steps = len(distinct)
    growth = math.log(everything / one) / math.log(steps) if steps > 1 and one else 1.0
    return IdStatistics(float(np.mean(ids)), one, growth)


def _use(spec: SparseTableSpec, rows: int, seen: IdStatistics, wire: str) -> TableUse:
    distinct = min(seen.distinct, float(rows))
    return TableUse(spec, rows, seen.ids, distinct, seen.growth, wire)


def _declared_ids(job: Job, spec: SparseTableSpec) -> int:
    """Ids of one example, from the shapes of the data vars."""
    slots = [job.program.vars[name] for name in job.tables.get(spec.name, ())]
    ragged = [slot.name for slot in slots if slot.ragged]
    if ragged:
        raise ConfigError(
            f"the number of ids of an example in {', '.join(ragged[:4])} is not declared, so the "
            f"use of table {spec.name} is not known.",
            hint=f"Give it by --ids {spec.name}=N, or measure it by --sample 32.",
        )
    return sum(math.prod(slot.shape[1:]) for slot in slots)


def _numbers(setting: str, texts: Collection[str], tables: Collection[str]) -> dict[str, int]:
    """Numbers by table from texts `TABLE=N`; raises `ConfigError` for other texts."""
    numbers = {}
    for text in texts:
        table, _, number = text.rpartition("=")
        if table not in tables:
            known = did_you_mean(table, tables, f"Tables are {', '.join(tables)}.")
            raise ConfigError(
                f"{setting} has {text!r}, but the job has no sparse table {table!r}.", hint=known
            )
        numbers[table] = count(number, f"{setting} of {table}")
        if numbers[table] < 1:
            raise ConfigError(
                f"{setting} of {table} is {number!r}; it must be at least 1.",
                hint="Leave it out to use the program's.",
            )
    return numbers
