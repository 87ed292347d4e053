"""What `psrt plan --size` computes, beside what real processes show: memory, traffic, CPU.

    python -m benchmarks.size_model [--rows 1000000] [--steps 60]

`memory`: rows × 16 are inserted into one pserver, once with SGD and once with Adam; growth of its
resident memory beside the prediction. `traffic`: a trainer that computes nothing sends W1's
gradients to two pservers over TCP, in every mode but geo, whose gradients are changes of a training
(tests/unit/sizing/test_traffic.py has it); bytes of a step by TCP's own count beside the
prediction, and the CPU time of one pserver. `costs`: the CPU time that `psrt.sizing.costs` counts
with. Linux only, and one BLAS thread.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks import ctr_data, harness, w1_job
from benchmarks.trainers import TIMEOUT_S, Who, connected, pull_and_push, push, sparse_table
from psrt.communicator.base import Communicator, Gradients
from psrt.communicator.factory import make
from psrt.core.specs import (
    Async,
    CommunicationMode,
    Constant,
    ConstantRate,
    HalfAsync,
    Sgd,
    Ssp,
    Sync,
    to_json,
)
from psrt.core.tensors import SelectedRows
from psrt.graph import builder
from psrt.graph.program import Parameter
from psrt.kernels.tables.rows import unique
from psrt.partition.plan import PartitionPlan, build_plan
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.sizing.footprint import sparse_footprint
from psrt.sizing.loads import Workload, loads_of
from psrt.sizing.traffic import FLOAT_BYTES, ID_BYTES, TableUse

STRIPES, PSERVERS, WARM_UP_STEPS = 4, 2, 10
DENSE_ELEMENTS, SMALL_PARTS = 1 << 20, 64
BATCH_ROWS = ctr_data.BATCH * ctr_data.SLOTS
MODES: dict[str, CommunicationMode] = {
    "sync": Sync(),
    "half_async": HalfAsync(),
    "async": Async(independent_recv_thread=False),  # a pull for each push, whatever the speed
    "ssp": Ssp(),
}
_BYTES_ACKED, _BYTES_RECEIVED = 120, 128  # in struct tcp_info of linux/tcp.h


def run(args: argparse.Namespace) -> harness.Figures:
    return {
        "workload": "size model",
        "memory": {name: memory(name, args.rows) for name in ("sgd", "adam")},
        "traffic": {name: traffic(mode, args.steps) for name, mode in MODES.items()},
        "costs": costs(),
    }


# --- memory ---------------------------------------------------------------------------------------


def memory(optimizer: str, rows: int) -> harness.Figures:
    """The first batch is not counted: it brings buffers and compiled kernels, too."""
    table = sparse_table("table", rows, ctr_data.WIDTH, optimizer)
    with (
        harness.daemons(1, f"--stripes={STRIPES}") as (daemon,),
        connected(daemon.endpoint, [table], Who()) as pservers,
    ):
        for ids in batches_of_ids(BATCH_ROWS):
            push(pservers, {"table": rows_of(ids)})
        before = resident_bytes(daemon.pid)
        for ids in batches_of_ids(rows):
            push(pservers, {"table": rows_of(ids)})
        grown = resident_bytes(daemon.pid) - before
        spec = pservers.plan.sparse[0]
    predicted = sparse_footprint(spec, rows, STRIPES).total_bytes
    predicted -= sparse_footprint(spec, BATCH_ROWS, STRIPES).total_bytes
    return {
        "rows": rows,
        "measured_bytes_per_row": round(grown / rows, 1),
        "predicted_bytes_per_row": round(predicted / rows, 1),
        "predicted_over_measured": round(predicted / grown, 3),
    }


def batches_of_ids(rows: int) -> Iterator[np.ndarray]:
    """Ids 0 … rows − 1, scattered over all of int64 by an odd factor."""
    for first in range(0, rows, BATCH_ROWS):
        numbers = np.arange(first, min(first + BATCH_ROWS, rows), dtype=np.uint64)
        yield (numbers * np.uint64(0x9E3779B97F4A7C15)).view(np.int64)


def rows_of(ids: np.ndarray) -> SelectedRows:
    values = np.full((len(ids), ctr_data.WIDTH), 1e-3, np.float32)
    return SelectedRows(ids, values, unique=True)


def resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


# --- costs ----------------------------------------------------------------------------------------


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
    """CPU seconds of a process for one call; a tenth more of them go before."""
    for number in range(times // 10):
        call(number)
    before = cpu_s(pid)
    for number in range(times):
        call(number)
    return (cpu_s(pid) - before) / times


# --- traffic --------------------------------------------------------------------------------------


def traffic(mode: CommunicationMode, steps: int) -> harness.Figures:
    ids = [batch[0].reshape(-1) for batch in ctr_data.w1_batches(0, 16)]
    distinct = [unique(each)[0] for each in ids]
    with harness.daemons(PSERVERS, "--unix-dir=off") as daemons:
        plan = w1_plan([daemon.endpoint for daemon in daemons], mode)
        with communicating(plan, mode) as communicator:
            train(communicator, plan, distinct, WARM_UP_STEPS)
            before, cpu = socket_bytes(), cpu_s(daemons[0].pid)
            train(communicator, plan, distinct, steps)
            after, cpu = socket_bytes(), cpu_s(daemons[0].pid) - cpu
            communicator.stop(TIMEOUT_S)
    up, down = ((end - start) / steps for start, end in zip(before, after, strict=True))
    use = TableUse(plan.sparse[0], ctr_data.ROWS, BATCH_ROWS, float(np.mean([*map(len, distinct)])))
    loads = loads_of(plan, Workload(mode, 1, 0.0, (use,)), STRIPES)
    predicted_up = sum(call.up_bytes for load in loads for call in load.calls)
    predicted_down = sum(call.down_bytes for load in loads for call in load.calls)
    return {
        "up_bytes_per_step": round(up),
        "down_bytes_per_step": round(down),
        "predicted_over_measured_up": round(predicted_up / up, 3),
        "predicted_over_measured_down": round(predicted_down / down, 3),
        "pserver_cpu_ms_per_step": round(cpu / steps * 1e3, 2),
        "predicted_over_measured_cpu": round(loads[0].cpu_s_per_step * steps / cpu, 3),
    }


def w1_plan(endpoints: Sequence[str], mode: CommunicationMode) -> PartitionPlan:
    with builder.program(0) as program:
        w1_job.build("sgd", 0.1, 50.0)
    return build_plan(program.parameters.values(), endpoints, mode=mode)


@contextlib.contextmanager
def communicating(plan: PartitionPlan, mode: CommunicationMode) -> Iterator[Communicator]:
    hello = pb.Hello(job_id="size", plan_hash=plan.hash(), trainers=1, mode=to_json(mode))
    clients = [Client(endpoint, 0, 1, "stream", hello) for endpoint in plan.endpoints]
    communicator = make(mode, plan, clients, call_timeout_s=TIMEOUT_S)
    try:
        communicator.start(TIMEOUT_S)
        yield communicator
    finally:
        communicator.close()
        for client in clients:
            client.close()


def train(
    communicator: Communicator, plan: PartitionPlan, distinct: list[np.ndarray], steps: int
) -> None:
    """Steps without computing; all of them are in the tables when this returns."""
    sent = steps_sent(communicator)
    table = plan.sparse[0].name
    dense: Gradients = {
        name: np.full(shape, 1e-6, np.float32) for name, shape in plan.dense_shapes.items()
    }
    for step in range(steps):
        now, following = distinct[step % len(distinct)], distinct[(step + 1) % len(distinct)]
        communicator.begin({table: following})
        communicator.finish({**dense, table: rows_of(now)})
    deadline = time.monotonic() + TIMEOUT_S
    while sent is not None and steps_sent(communicator) < sent + steps:
        if time.monotonic() > deadline:
            raise SystemExit(f"{steps} steps were not sent within {TIMEOUT_S:.0f} s")
        time.sleep(0.005)


def steps_sent(communicator: Communicator) -> int | None:
    """None where a step has been sent when it ends."""
    count = communicator.counters.snapshot().get("steps_sent")
    return None if count is None else int(count)


def socket_bytes() -> tuple[int, int]:
    """Bytes that this process has sent and received over its open TCP connections."""
    sent = received = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(name))) as found:
            if found.family != socket.AF_UNIX and found.getpeername():
                info = found.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
                sent += struct.unpack_from("Q", info, _BYTES_ACKED)[0]
                received += struct.unpack_from("Q", info, _BYTES_RECEIVED)[0]
    return sent, received


def cpu_s(pid: int) -> float:
    """CPU time of a process so far, by the scheduler: /proc/PID/stat counts ticks of 10 ms."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--steps", type=int, default=60)
    harness.main(parser, run)
