"""W8: the cost of rows on a pserver: resident memory, and time to create and to save them.

    python -m benchmarks.w8_memory [--rows 5000000] [--width 16] [--optimizers sgd,adam]
    python -m benchmarks.w8_memory --rows 50000000 --width 8 --optimizers sgd --no-save [--no-ages]

With `--no-ages` rows have no maximal age: no sweep runs while the table grows, and no row is
dropped. Per optimizer:

    bytes_per_row         growth of the daemon's resident memory ÷ rows
    resident_gib          resident memory of the whole daemon, with the rows
    insert_rows_per_s     rows created per second by one trainer that pushes gradients of new ids,
                          scattered over all int64, during eight sweeps for rows of maximal age
    slowest_insert_rows_per_s  speed in the slowest twentieth of the rows: growth must not stall
    longest_request_ms    time of these pushes; and `median_request_ms`
    control_longest_request_ms  time of as many pushes to a table that does not grow, alternating
                          with the others: the cost of host and link; `control_median_request_ms`
    save_s                time to a complete directory with all rows: exported by the pserver,
                          written, synced and hashed by the trainer
    shrunk_share          share of that memory after the second half of the rows was dropped by age,
                          once the first half was pushed twice more; null with `--no-ages`

Measure `longest_request_ms` on a quiet host and compare it with the control's: each is a single
maximum. The trainer waits for each push, so the time includes the client's part.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.measuring import harness

os.environ.update(harness.ONE_THREAD)

import numpy as np

from benchmarks.measuring import processes
from benchmarks.workloads.row_trainer import TABLE
from benchmarks.workloads.trainers import (
    JOB,
    OPTIMIZERS,
    TIMEOUT_S,
    Who,
    connected,
    push,
    sparse_table,
)
from psrt.communicator.requests.pserver_group import PserverGroup
from psrt.core.specs import Async, TableSpec
from psrt.core.specs.lifecycle import Lifecycle
from psrt.core.specs.table_options import TableOptions
from psrt.core.tensors import SelectedRows
from psrt.core.types import I64
from psrt.graph.program import Parameter, Program
from psrt.partition.plan import build_plan
from psrt.partition.transpiler import TrainerProgram
from psrt.trainer.models import export
from psrt.trainer.models.model_dir import Manifest
from psrt.trainer.training.cluster import ConnectedCluster

ODD = 0x9E3779B97F4A7C15  # 2⁶⁴ / golden ratio; i · ODD mod 2⁶⁴ differs for every i
CONTROL = "control"
SEGMENTS = 20
SETTLE_S = 1.0
SWEPT_ROWS_PER_S = 200_000  # the least, on a busy host; a sweep pauses half of the time


def run(args: argparse.Namespace) -> harness.Figures:
    return {name: of_optimizer(name, args) for name in args.optimizers.split(",")}


def of_optimizer(optimizer: str, args: argparse.Namespace) -> harness.Figures:
    ages = None if args.no_ages else Lifecycle(ttl_rounds=-(-args.rows // args.batch))
    options = TableOptions(lifecycle=ages)
    table = sparse_table(TABLE, args.rows, args.width, optimizer, options=options)
    tables = [table, sparse_table(CONTROL, args.batch, args.width, optimizer)]
    with harness.daemons(1) as (daemon,):
        with connected(daemon.endpoint, tables, Who()) as pservers:
            for name in (TABLE, CONTROL):  # allocates buffers and starts threads
                push_new_rows(pservers, 0, args.batch, args, name)
            before = processes.resident_bytes(daemon.pid)
            figures = inserted(pservers, args)
            resident = processes.resident_bytes(daemon.pid)
        save_s = None if args.no_save else round(saved_s(daemon.endpoint, tables, args.rows), 2)
        made = resident - before
        left = None if args.no_ages else shrunk_bytes(daemon, tables, args) - before
    return {
        "bytes_per_row": round(made / (args.rows - args.batch), 1),
        "resident_gib": round(resident / (processes.MIB << 10), 3),
        **figures,
        "save_s": save_s,
        "shrunk_share": None if left is None else round(left / made, 3),
    }


def inserted(pservers: PserverGroup, args: argparse.Namespace) -> harness.Figures:
    """Create the rows after the first batch; returns speeds and times."""
    starts = range(args.batch, args.rows, args.batch)
    taken, control = np.array([push_both(pservers, start, args) for start in starts]).T
    slowest = max(np.mean(part) for part in np.array_split(taken, SEGMENTS) if len(part))
    return {
        "insert_rows_per_s": round((args.rows - args.batch) / taken.sum()),
        "slowest_insert_rows_per_s": round(args.batch / slowest),
        "longest_request_ms": round(float(taken.max()) * 1e3, 2),
        "median_request_ms": round(statistics.median(taken) * 1e3, 2),
        "control_longest_request_ms": round(float(control.max()) * 1e3, 2),
        "control_median_request_ms": round(statistics.median(control) * 1e3, 2),
    }


def push_both(pservers: PserverGroup, start: int, args: argparse.Namespace) -> tuple[float, float]:
    """Seconds of a push of new rows, and of a push of existing rows."""
    taken = push_new_rows(pservers, start, args.batch, args)
    return taken, push_new_rows(pservers, 0, args.batch, args, CONTROL)


def push_new_rows(
    pservers: PserverGroup, start: int, batch: int, args: argparse.Namespace, table: str = TABLE
) -> float:
    """Seconds of one push of the ids with numbers `start` to `start + batch`."""
    ids = scattered(start, min(start + batch, args.rows))
    gradient = np.full((len(ids), args.width), 1e-3, np.float32)
    rows = SelectedRows(ids, gradient, unique=True)
    started = time.perf_counter()
    push(pservers, {table: rows})
    return time.perf_counter() - started


def scattered(start: int, end: int) -> I64:
    """Distinct ids anywhere in int64; equal numbers give equal ids."""
    return (np.arange(start, end, dtype=np.uint64) * np.uint64(ODD)).view(np.int64)


def saved_s(endpoint: str, tables: Sequence[Parameter], rows: int) -> float:
    """Seconds to save the table in a trainer's model directory."""
    with (
        tempfile.TemporaryDirectory(prefix="psrt-w8-") as folder,
        cluster(endpoint, tables) as pserver,
    ):
        saved: list[TableSpec] = [each for each in pserver.plan.sparse if each.name == TABLE]
        manifest = Manifest(JOB, "psrt", "", saved)
        started = time.perf_counter()
        pages = {TABLE: partial(pserver.rows, TABLE)}
        manifest = export.save(Path(folder) / "model", manifest, {}, pages)
        taken = time.perf_counter() - started
    if manifest.rows(TABLE) != rows:
        raise SystemExit(f"{manifest.rows(TABLE)} rows were saved where {rows} had been made")
    return taken


def shrunk_bytes(
    daemon: harness.Daemon, tables: Sequence[Parameter], args: argparse.Namespace
) -> int:
    """Push the first half of the rows twice more and drop the others by age.

    Returns the resident memory of the daemon.
    """
    with connected(daemon.endpoint, tables, Who(incarnation=2)) as pservers:
        for start in [*range(0, args.rows // 2, args.batch)] * 2:
            push_new_rows(pservers, start, args.batch, args)
    with cluster(daemon.endpoint, tables, TIMEOUT_S + args.rows / SWEPT_ROWS_PER_S) as pserver:
        pserver.shrink([TABLE], dry_run=False)
    time.sleep(SETTLE_S)
    return processes.resident_bytes(daemon.pid)


@contextlib.contextmanager
def cluster(
    endpoint: str, tables: Sequence[Parameter], call_timeout_s: float = TIMEOUT_S
) -> Iterator[ConnectedCluster]:
    """A cluster of one pserver for a trainer of the job."""
    part = TrainerProgram(Program(), build_plan(tables, [endpoint]), Async(), 0, 1, JOB)
    made = ConnectedCluster(part, call_timeout_s=call_timeout_s, say=print)
    with contextlib.closing(made) as found:
        found.clients[0].connect(TIMEOUT_S)
        found.clients[0].attend(TIMEOUT_S)
        yield found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--batch", type=int, default=13_312, help="rows a push")
    parser.add_argument("--optimizers", default="sgd,adam", help=f"of {','.join(OPTIMIZERS)}")
    parser.add_argument("--no-save", action="store_true")
    parser.add_argument("--no-ages", action="store_true")
    harness.main(parser, run)
