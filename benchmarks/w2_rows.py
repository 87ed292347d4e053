"""W2: pull rows, make a gradient of them, push it: one pserver, one trainer, a table of 1 M × 16.

    python -m benchmarks.w2_rows [--ids unique|zipf] [--optimizer sgd|adagrad|adam]
                                 [--carrier stream|grpc] [--seconds 8] [--repeat N]

`rows_per_s` = ids the caller asked for ÷ time, each pulled once and pushed once. Repeated ids are
merged by the trainer before they travel, within the measured time. Run with one BLAS thread.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks import ctr_data, harness
from psrt.communicator.pservers import Pservers
from psrt.core.specs import Adagrad, Adam, Async, ConstantRate, Sgd, Uniform, to_json
from psrt.core.tensors import SelectedRows
from psrt.graph.program import Parameter
from psrt.kernels.rows import gather, merge, unique
from psrt.partition.plan import build_plan
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method

OPTIMIZERS = {"sgd": Sgd(), "adagrad": Adagrad(), "adam": Adam()}
WARM_UP_STEPS, TIMEOUT_S = 80, 60.0
TABLE = "table"


def run(args: argparse.Namespace) -> harness.Figures:
    ids = ctr_data.w2_ids(args.ids)
    with harness.pservers(1) as endpoints:
        pservers, client = connect(endpoints[0], args)
        try:
            return measure(pservers, ids, args)
        finally:
            pservers.close()
            client.close()


def connect(endpoint: str, args: argparse.Namespace) -> tuple[Pservers, Client]:
    table = Parameter(
        TABLE,
        (ctr_data.ROWS, ctr_data.WIDTH),
        initializer=Uniform(-0.05, 0.05),
        seed=1,
        sparse=True,
        distributed=True,
        optimizer=OPTIMIZERS[args.optimizer],
        learning_rate=ConstantRate(1.0 if args.optimizer == "sgd" else 0.01),
    )
    plan = build_plan([table], [endpoint])
    hello = pb.Hello(job_id="w2", plan_hash=plan.hash(), trainers=1, mode=to_json(Async()))
    client = Client(endpoint, 0, 1, args.carrier, hello)
    pservers = Pservers(plan, [client], call_timeout_s=TIMEOUT_S)
    pservers.connect(TIMEOUT_S, print)
    return pservers, client


def measure(pservers: Pservers, ids: list[np.ndarray], args: argparse.Namespace) -> harness.Figures:
    for number in range(WARM_UP_STEPS):
        step(pservers, ids[number % len(ids)], args.ids)
    steps, started, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - started < args.seconds:
        step(pservers, ids[steps % len(ids)], args.ids)
        steps += 1
    seconds = time.perf_counter() - started
    return {
        "workload": "W2",
        "ids": args.ids,
        "optimizer": args.optimizer,
        "carrier": args.carrier,
        "rows_per_s": round(steps * len(ids[0]) / seconds),
        "step_ms": round(seconds / steps * 1e3, 3),
        "cpu_ms_per_step": round((time.process_time() - cpu) / steps * 1e3, 3),
        "steps": steps,
    }


def step(pservers: Pservers, ids: np.ndarray, kind: str) -> None:
    """Pull the rows of `ids`, push 1e-3 × rows as their gradient."""
    if kind == "unique":
        rows, versions = pservers.pull_rows({TABLE: ids})
        gradient = SelectedRows(ids, rows[TABLE] * np.float32(1e-3), unique=True)
    else:
        distinct, inverse = unique(ids)
        rows, versions = pservers.pull_rows({TABLE: distinct})
        values = np.empty((len(ids), ctr_data.WIDTH), np.float32)
        gather(rows[TABLE], inverse, values)
        gradient = merge(SelectedRows(ids, values * np.float32(1e-3)))
    requests = pservers.router.requests()
    pservers.router.push(requests, {TABLE: gradient}, versions)
    pservers.call(Method.PUSH, requests)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--ids", choices=("unique", "zipf"), default="unique")
    parser.add_argument("--optimizer", choices=tuple(OPTIMIZERS), default="sgd")
    parser.add_argument("--carrier", choices=("stream", "grpc"), default="stream")
    parser.add_argument("--seconds", type=float, default=8.0)
    harness.main(parser, run)
