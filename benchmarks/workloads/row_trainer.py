"""A trainer process that pulls and pushes rows of one table concurrently with others.

    python -m benchmarks.workloads.row_trainer --endpoint E --number I --trainers T …

`rows_by_size` and `latency` start it. It begins when all T trainers have reached the start line,
stops after `--seconds`, and prints its own `rows_per_s`.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import dataclass, fields

from benchmarks.measuring import harness

os.environ.update(harness.ONE_THREAD)

from benchmarks.workloads.trainers import (
    Who,
    connected,
    distinct_ids,
    pull_and_push,
    sparse_table,
    start_line,
)
from psrt.core.types import I64
from psrt.graph.program import Parameter

TABLE = "table"
ID_SETS, WARM_UP_STEPS = 8, 5


@dataclass(frozen=True)
class Load:
    """The work of each trainer: steps of `batch` rows of a table of `rows` × `width`.

    `nice` lowers the priority of its process.
    """

    rows: int = 1_000_000
    width: int = 16
    batch: int = 13_312
    optimizer: str = "sgd"
    seconds: float = 3.0
    nice: int = 0

    def table(self) -> Parameter:
        return sparse_table(TABLE, self.rows, self.width, self.optimizer)

    def ids(self, trainer: int) -> list[I64]:
        seeds = range(trainer * ID_SETS, (trainer + 1) * ID_SETS)
        return [distinct_ids(self.rows, self.batch, seed) for seed in seeds]

    def flags(self) -> list[str]:
        return [f"--{field.name}={getattr(self, field.name)}" for field in fields(self)]


def flags_of(endpoint: str, who: Who, load: Load) -> list[str]:
    own = [f"--endpoint={endpoint}", f"--number={who.number}", f"--trainers={who.trainers}"]
    return [*own, f"--carrier={who.carrier}", *load.flags()]


def run(args: argparse.Namespace) -> harness.Figures:
    load = Load(args.rows, args.width, args.batch, args.optimizer, args.seconds, args.nice)
    os.nice(load.nice)
    who = Who(args.number, args.trainers, args.carrier)
    ids = load.ids(who.number)
    with connected(args.endpoint, [load.table()], who) as pservers:
        for number in range(WARM_UP_STEPS):
            pull_and_push(pservers, TABLE, ids[number % ID_SETS])
        start_line(pservers)
        steps, started = 0, time.perf_counter()
        while time.perf_counter() - started < load.seconds:
            pull_and_push(pservers, TABLE, ids[steps % ID_SETS])
            steps += 1
        seconds = time.perf_counter() - started
    return {"rows_per_s": steps * len(ids[0]) / seconds, "steps": steps}


def parser_of() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--number", type=int, default=0)
    parser.add_argument("--trainers", type=int, default=1)
    parser.add_argument("--carrier", choices=("stream", "grpc"), default="stream")
    for field in fields(Load):
        parser.add_argument(f"--{field.name}", type=type(field.default), default=field.default)
    return parser


if __name__ == "__main__":
    print(json.dumps(run(parser_of().parse_args())))
