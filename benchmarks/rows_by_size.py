"""Rows pulled and pushed per second, by table size, width, batch and number of trainers.

    python -m benchmarks.rows_by_size [--quick] [--axes batch,width,table_rows,trainers]
                                      [--optimizer sgd|adagrad|adam] [--carrier stream|grpc]

Each axis varies one size; the others are those of W2: 1 M rows × 16, 13,312 distinct ids a step,
one trainer, one pserver. All rows exist before the measurement. Each point has `rows_per_s` (ids of
the steps of all trainers ÷ time) and `step_ms`. `--quick` takes smaller tables and shorter times.
`python -m benchmarks.pictures` draws the result.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from benchmarks.measuring import harness

os.environ.update(harness.ONE_THREAD)

from benchmarks.workloads import row_trainer
from benchmarks.workloads.row_trainer import TABLE, Load
from benchmarks.workloads.trainers import Who, connected, fill, pull_and_push, sparse_table
from psrt.communicator.requests.pserver_group import PserverGroup
from psrt.core.types import I64
from psrt.rpc.dialing import Carrier

FEWEST_STEPS = 3


@dataclass(frozen=True)
class Sizes:
    """The points of every axis, and the seconds of each measurement.

    `wide_rows` is the table size of the axis `width`, `rows` that of the other axes.
    """

    rows: int = 1_000_000
    wide_rows: int = 1_000_000
    seconds: float = 3.0
    table_rows: Sequence[int] = (100_000, 1_000_000, 10_000_000, 50_000_000)
    width: Sequence[int] = (1, 4, 16, 64, 256)
    batch: Sequence[int] = (100, 1_000, 10_000, 100_000, 1_000_000)
    trainers: Sequence[int] = (1, 2, 4, 8)


FULL = Sizes()
QUICK = replace(FULL, wide_rows=200_000, seconds=1.5, table_rows=(100_000, 1_000_000, 10_000_000))
TINY = Sizes(2_000, 1_000, 0.02, (1_000, 2_000), (1, 16), (100, 1_000), (1,))
"""Sizes for tests; their speed is meaningless."""


class Axes:
    """The measurements: a method per axis returns figures by size."""

    def __init__(self, sizes: Sizes, optimizer: str, carrier: Carrier) -> None:
        self.sizes, self.carrier = sizes, carrier
        self.load = Load(sizes.rows, optimizer=optimizer, seconds=sizes.seconds)

    def table_rows(self) -> harness.Figures:
        found: harness.Figures = {}
        largest = replace(self.load, rows=max(self.sizes.table_rows))
        with self.connected([largest]) as pservers:
            made = 0
            for rows in self.sizes.table_rows:
                fill(pservers, TABLE, made, rows, largest.width)
                load, made = replace(largest, rows=rows), rows
                found[str(rows)] = self.measured(pservers, TABLE, load.ids(0))
        return found

    def width(self) -> harness.Figures:
        loads = [replace(self.load, rows=self.sizes.wide_rows, width=w) for w in self.sizes.width]
        found: harness.Figures = {}
        with self.connected(loads) as pservers:
            for number, load in enumerate(loads):
                table = table_name(number)
                fill(pservers, table, 0, load.rows, load.width)
                found[str(load.width)] = self.measured(pservers, table, load.ids(0))
        return found

    def batch(self) -> harness.Figures:
        found: harness.Figures = {}
        with self.connected([self.load]) as pservers:
            fill(pservers, TABLE, 0, self.load.rows, self.load.width)
            for batch in self.sizes.batch:
                ids = replace(self.load, batch=batch).ids(0)
                found[str(batch)] = self.measured(pservers, TABLE, ids)
        return found

    def trainers(self) -> harness.Figures:
        return {str(count): self.side_by_side(count) for count in self.sizes.trainers}

    def side_by_side(self, count: int) -> harness.Figures:
        """Figures of `count` concurrent trainers, each a process."""
        with harness.pservers(1) as endpoints:
            whos = [Who(number, count, self.carrier) for number in range(count)]
            with connected(endpoints[0], [self.load.table()], whos[0]) as pservers:
                fill(pservers, TABLE, 0, self.load.rows, self.load.width)
            flags = [
                row_trainer.flags_of(endpoints[0], replace(who, incarnation=2), self.load)
                for who in whos
            ]
            found = harness.together("workloads.row_trainer", flags)
        total = sum(each["rows_per_s"] for each in found)
        return {
            "rows_per_s": round(total),
            "step_ms": round(count * self.load.batch / total * 1e3, 3),
        }

    @contextlib.contextmanager
    def connected(self, loads: Sequence[Load]) -> Iterator[PserverGroup]:
        """A connection to a pserver with a table per load."""
        tables = [
            sparse_table(table_name(number), load.rows, load.width, load.optimizer)
            for number, load in enumerate(loads)
        ]
        who = Who(carrier=self.carrier)
        with harness.pservers(1) as endpoints, connected(endpoints[0], tables, who) as pservers:
            yield pservers

    def measured(self, pservers: PserverGroup, table: str, ids: list[I64]) -> harness.Figures:
        for batch in ids[:FEWEST_STEPS]:
            pull_and_push(pservers, table, batch)
        steps, started = 0, time.perf_counter()
        while steps < FEWEST_STEPS or time.perf_counter() - started < self.sizes.seconds:
            pull_and_push(pservers, table, ids[steps % len(ids)])
            steps += 1
        seconds = time.perf_counter() - started
        return {
            "rows_per_s": round(steps * len(ids[0]) / seconds),
            "step_ms": round(seconds / steps * 1e3, 3),
        }


def table_name(number: int) -> str:
    return TABLE if number == 0 else f"{TABLE}{number}"


def run(args: argparse.Namespace) -> harness.Figures:
    sizes = TINY if args.tiny else QUICK if args.quick else FULL
    axes = Axes(sizes, args.optimizer, args.carrier)
    wanted = args.axes.split(",")
    return {
        "workload": "rows by size",
        "optimizer": args.optimizer,
        "carrier": args.carrier,
        "axes": {name: getattr(axes, name)() for name in wanted},
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a minute or two")
    parser.add_argument("--tiny", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--axes", default="batch,width,table_rows,trainers")
    parser.add_argument("--optimizer", choices=("sgd", "adagrad", "adam"), default="sgd")
    parser.add_argument("--carrier", choices=("stream", "grpc"), default="stream")
    harness.main(parser, run)
