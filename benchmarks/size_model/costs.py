"""CPU time of a pserver for calls of trainers: the constants of `psrt.sizing.costs`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.measuring import harness
from benchmarks.measuring.processes import scheduled_s
from benchmarks.size_model.memory import BATCH_ROWS
from benchmarks.workloads import ctr_data
from benchmarks.workloads.trainers import Who, connected, pull_and_push, push, sparse_table
from psrt.core.specs import Constant, ConstantRate, Sgd
from psrt.graph.program import Parameter
from psrt.sizing.traffic import FLOAT_BYTES, ID_BYTES

DENSE_ELEMENTS, SMALL_PARTS = 1 << 20, 64


def costs() -> harness.Figures:
    """CPU time of one pserver: of a small call, of a part of it, of a byte, of a row."""
    tables = [
        sparse_table("rows", ctr_data.ROWS, ctr_data.WIDTH),
        dense_parameter("dense", DENSE_ELEMENTS),
        *(dense_parameter(f"small{number}", 16) for number in range(SMALL_PARTS)),
    ]
    ids, values = ctr_data.w2_ids("unique"), np.zeros(DENSE_ELEMENTS, np.float32)
    small = {f"small{number}": np.zeros(16, np.float32) for number in range(SMALL_PARTS)}
    with (
        harness.daemons(1, "--unix-dir=off") as (daemon,),
        connected(daemon.endpoint, tables, Who()) as pservers,
    ):

        def pull_one(number: int) -> None:
            pservers.pull_rows({"rows": ids[0][:1]})

        def pull_small(number: int) -> None:
            pservers.pull_dense(small)

        def push_and_pull_dense(number: int) -> None:
            push(pservers, {"dense": values})
            pservers.pull_dense({"dense": values})

        def pull_and_push_rows(number: int) -> None:
            pull_and_push(pservers, "rows", ids[number % len(ids)])

        call_s = cpu_of_one(daemon.pid, pull_one, 5_000)
        part_s = (cpu_of_one(daemon.pid, pull_small, 500) - call_s) / SMALL_PARTS
        dense_s = cpu_of_one(daemon.pid, push_and_pull_dense, 200) - 2 * call_s
        rows_s = cpu_of_one(daemon.pid, pull_and_push_rows, 400) - 2 * call_s
    byte_s = dense_s / (2 * 4 * DENSE_ELEMENTS)
    bytes_of_rows = BATCH_ROWS * 2 * (ID_BYTES + FLOAT_BYTES * ctr_data.WIDTH)
    return {
        "call_us": round(call_s * 1e6, 1),
        "part_us": round(part_s * 1e6, 1),
        "byte_ns": round(byte_s * 1e9, 3),
        "row_ns": round((rows_s - bytes_of_rows * byte_s) / (2 * BATCH_ROWS) * 1e9, 1),
    }


def dense_parameter(name: str, elements: int) -> Parameter:
    return Parameter(
        name,
        (elements,),
        initializer=Constant(),
        seed=1,
        optimizer=Sgd(),
        learning_rate=ConstantRate(0.1),
    )


def cpu_of_one(pid: int, call: Callable[[int], None], times: int) -> float:
    """CPU seconds of a process for one call, after a tenth as many calls to warm up."""
    for number in range(times // 10):
        call(number)
    before = scheduled_s(pid)
    for number in range(times):
        call(number)
    return (scheduled_s(pid) - before) / times
