"""W2: steps of one trainer that pulls rows of a table of 1 M × 16 and pushes their gradients.

    python -m benchmarks.w2_rows [--ids unique|zipf] [--optimizer sgd|adagrad|adam]
                                 [--carrier stream|grpc] [--seconds 8] [--repeat N]

`rows_per_s` = requested ids ÷ time; each id is pulled once and pushed once. The trainer merges
repeated ids before a push, within the measured time. `cpu_ms_per_step` is the trainer's CPU time of
a step, `pserver_cpu_ms_per_step` the pserver's. Run with one BLAS thread.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks.measuring import harness, processes
from benchmarks.workloads import ctr_data
from benchmarks.workloads.trainers import (
    OPTIMIZERS,
    Who,
    connected,
    pull_and_push,
    push,
    sparse_table,
)
from psrt.communicator.requests.pserver_group import PserverGroup
from psrt.core.tensors import SelectedRows
from psrt.kernels.tables.rows import gather, merge, unique

WARM_UP_STEPS = 80
TABLE = "table"


def run(args: argparse.Namespace) -> harness.Figures:
    ids = ctr_data.w2_ids(args.ids)
    table = sparse_table(TABLE, ctr_data.ROWS, ctr_data.WIDTH, args.optimizer)
    with (
        harness.daemons(1) as (daemon,),
        connected(daemon.endpoint, [table], Who(carrier=args.carrier)) as pservers,
    ):
        return measure(pservers, daemon.pid, ids, args)


def measure(
    pservers: PserverGroup, pserver_pid: int, ids: list[np.ndarray], args: argparse.Namespace
) -> harness.Figures:
    for number in range(WARM_UP_STEPS):
        step(pservers, ids[number % len(ids)], args.ids)
    pserver_cpu = processes.cpu_s(pserver_pid)
    steps, started, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - started < args.seconds:
        step(pservers, ids[steps % len(ids)], args.ids)
        steps += 1
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    pserver_cpu = processes.cpu_s(pserver_pid) - pserver_cpu
    return {
        "workload": "W2",
        "ids": args.ids,
        "optimizer": args.optimizer,
        "carrier": args.carrier,
        "rows_per_s": round(steps * len(ids[0]) / seconds),
        "step_ms": round(seconds / steps * 1e3, 3),
        "cpu_ms_per_step": round(cpu / steps * 1e3, 3),
        "pserver_cpu_ms_per_step": round(pserver_cpu / steps * 1e3, 3),
        "steps": steps,
    }


def step(pservers: PserverGroup, ids: np.ndarray, kind: str) -> None:
    """Pull the rows of `ids` and push 1e-3 × rows as their gradient."""
    if kind == "unique":
        pull_and_push(pservers, TABLE, ids)
        return
    distinct, inverse = unique(ids)
    rows, versions = pservers.pull_rows({TABLE: distinct})
    values = np.empty((len(ids), ctr_data.WIDTH), np.float32)
    gather(rows[TABLE], inverse, values)
    push(pservers, {TABLE: merge(SelectedRows(ids, values * np.float32(1e-3)))}, versions)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--ids", choices=("unique", "zipf"), default="unique")
    parser.add_argument("--optimizer", choices=tuple(OPTIMIZERS), default="sgd")
    parser.add_argument("--carrier", choices=("stream", "grpc"), default="stream")
    parser.add_argument("--seconds", type=float, default=8.0)
    harness.main(parser, run)
