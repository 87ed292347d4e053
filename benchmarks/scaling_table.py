"""Computes the tables of docs/how-to/size-a-cluster.md: one CTR job from 1 to 1,000 trainers.

    python -m benchmarks.scaling_table            prints them
    python -m benchmarks.scaling_table --write    writes them to docs/how-to/size-a-cluster.md

The job is W1's network with Adagrad and a table of 10^9 rows of 16. A trainer is one core and takes
steps of 512 or of 8,192 examples. Pservers have 64 GiB and 8 cores; all links carry 10 Gbit/s.
Distinct ids are counted in W1's stream. No process is started.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.simulate_rounds import Round, figures
from benchmarks.workloads import ctr_data, w1_job
from psrt.core.errors import ConfigError
from psrt.core.quantities import format_bytes, format_rate
from psrt.core.specs import VIRTUAL_SHARDS, Async, CommunicationMode, Geo, HalfAsync, Sync
from psrt.graph import builder
from psrt.graph.program import Program
from psrt.partition.plan import PartitionPlan, build_plan
from psrt.sizing import costs
from psrt.sizing.loads import Workload, loads_of
from psrt.sizing.sizing import Limits, Sizing, size
from psrt.sizing.traffic import TableUse

DOC = Path(__file__).parents[1] / "docs" / "how-to" / "size-a-cluster.md"
ROWS = 10**9
TRAINERS = (1, 8, 64, 256, 1000)
LIMITS = Limits(memory_bytes=64 << 30, link_bytes_per_s=1.25e9, cores=8, stripes=8)
MODES: dict[str, CommunicationMode] = {
    "async": Async(),
    "half_async": HalfAsync(),
    "geo, 100": Geo(100),
}


@dataclass(frozen=True)
class Trainer:
    """One core; `examples_per_s` is 0.86 of the 40,000 of bare matrix products, measured by W7."""

    batch: int
    examples_per_s: float = 34_000.0

    @property
    def step_s(self) -> float:
        return self.batch / self.examples_per_s


SMALL, LARGE = Trainer(512), Trainer(8192)


def tables() -> dict[str, str]:
    """Markdown tables by their names in the document."""
    return {
        "sizes of small steps": markdown(sizes(SMALL)),
        "sizes of large steps": markdown(sizes(LARGE)),
        "rounds": markdown(rounds()),
    }


def sizes(trainer: Trainer) -> Iterator[tuple[str, ...]]:
    """Rows of a table: the pservers that each mode takes, by trainers, and the deciding limit."""
    yield "trainers", "mode", "pservers", "memory each", "link", "calls/s each", "connections each"
    for trainers in TRAINERS:
        for name, mode in MODES.items():
            yield f"{trainers:,}", name, *found(trainer, trainers, mode)


def found(trainer: Trainer, trainers: int, mode: CommunicationMode) -> tuple[str, ...]:
    work = Workload(mode, trainers, 1 / trainer.step_s, (use_of(trainer, mode),))
    try:
        sized = size(lambda pservers: plan_of(pservers, mode), work, LIMITS)
    except ConfigError:
        used = size(lambda pservers: plan_of(pservers, mode), work, LIMITS, VIRTUAL_SHARDS).used
        worst = max(used, key=lambda limit: used[limit])
        return f"none: {used[worst]:.1f} × {worst} even with {VIRTUAL_SHARDS:,}", "", "", "", ""
    return cells(sized)


def cells(sized: Sizing) -> tuple[str, ...]:
    busiest = sized.busiest
    return (
        f"{sized.pservers}, {sized.decided_by}",
        format_bytes(sized.fullest.memory_bytes),
        format_rate(busiest.link_bytes_per_s),
        f"{busiest.requests_per_s:,.0f}",
        f"{busiest.connections:,}",
    )


def rounds() -> Iterator[tuple[str, ...]]:
    """Rows of a table: simulated rounds of sync, and the share of a round that computes."""
    yield (
        "trainers",
        "pservers",
        *(
            f"{what}, {trainer.batch:,}"
            for trainer in (SMALL, LARGE)
            for what in ("round", "busy", "busy, stragglers")
        ),
    )
    for trainers, pservers in ((1, 4), (4, 4), (16, 4), (16, 16), (64, 16), (256, 32), (1000, 32)):
        columns: list[str] = []
        counted = max(12, 1000 // trainers)
        for trainer in (SMALL, LARGE):
            even = round_of(trainer, trainers, pservers)
            uneven = figures(replace(even, slow_share=0.01), counted)
            plain = figures(even, counted)
            columns += [f"{plain['round_ms']:.0f} ms", f"{plain['busy']:.0%}"]
            columns += [f"{uneven['busy']:.0%}"]
        yield f"{trainers:,}", str(pservers), *columns


def round_of(trainer: Trainer, trainers: int, pservers: int) -> Round:
    """A round with the costs of `psrt.sizing`.

    All cores share half of the compiled work, while requests and replies pass. The thread that
    closes the round does the other half.
    """
    mode = Sync()
    work = Workload(mode, trainers, 0.0, (use_of(trainer, mode),))
    (call,) = loads_of(plan_of(pservers, mode), work, LIMITS.stripes)[0].calls
    python_s, compiled_s = costs.python_s([call]), costs.compiled_s([call])
    return Round(
        trainers,
        pservers,
        trainer.step_s,
        call.up_bytes,
        call.down_bytes,
        trainer_call_s=python_s,
        pserver_call_s=python_s + compiled_s / 2 / LIMITS.cores,
        apply_s=compiled_s / 2,
        link_bytes_per_s=LIMITS.link_bytes_per_s,
    )


def use_of(trainer: Trainer, mode: CommunicationMode) -> TableUse:
    distinct, growth = distinct_ids()
    spec = plan_of(1, mode).sparse[0]
    of_batch = distinct * math.pow(trainer.batch / ctr_data.BATCH, growth)
    return TableUse(spec, ROWS, trainer.batch * ctr_data.SLOTS, of_batch, growth)


@cache
def plan_of(pservers: int, mode: CommunicationMode) -> PartitionPlan:
    endpoints = [f"pserver-{number}:6170" for number in range(pservers)]
    return build_plan(program().parameters.values(), endpoints, mode=mode)


@cache
def program() -> Program:
    with builder.program(0) as made:
        w1_job.build("adagrad", 0.1, 1.0)
    return made


@cache
def distinct_ids(batches: int = 64) -> tuple[float, float]:
    """The number of distinct ids in 512 examples of W1, and its growth with steps (β)."""
    draw = ctr_data.zipf_ids(100)
    read = [draw(ctr_data.BATCH * ctr_data.SLOTS) for _ in range(batches)]
    one = float(np.mean([len(np.unique(ids)) for ids in read]))
    everything = len(np.unique(np.concatenate(read)))
    return one, math.log(everything / one) / math.log(batches)


def markdown(lines: Iterator[tuple[str, ...]]) -> str:
    head, *body = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([head, "|" + "---|" * (head.count("|") - 1), *body])


def written(text: str) -> str:
    """The document with new tables."""
    for name, table in tables().items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, rest = text.split(begin)
        text = f"{before}{begin}{table}\n{end}{rest.split(end)[1]}"
    return text


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="change docs/how-to/size-a-cluster.md")
    if parser.parse_args().write:
        DOC.write_text(written(DOC.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print("\n\n".join(f"{name}\n\n{table}" for name, table in tables().items()))
