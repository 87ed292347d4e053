"""Bytes and CPU time of training steps, measured over TCP and predicted."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import time
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.measuring import harness
from benchmarks.measuring.processes import scheduled_s
from benchmarks.size_model.memory import BATCH_ROWS, STRIPES, rows_of
from benchmarks.workloads import ctr_data, w1_job
from benchmarks.workloads.trainers import TIMEOUT_S
from psrt.communicator.base import Communicator, Gradients
from psrt.communicator.factory import make
from psrt.core.specs import Async, CommunicationMode, HalfAsync, Ssp, Sync, to_json
from psrt.graph import builder
from psrt.kernels.tables.rows import unique
from psrt.partition.plan import PartitionPlan, build_plan
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.sizing.loads import Workload, loads_of
from psrt.sizing.traffic import TableUse

PSERVERS, WARM_UP_STEPS = 2, 10
MODES: dict[str, CommunicationMode] = {
    "sync": Sync(),
    "half_async": HalfAsync(),
    "async": Async(independent_recv_thread=False),  # one pull for each push at any speed
    "ssp": Ssp(),
}
_BYTES_ACKED, _BYTES_RECEIVED = 120, 128  # in struct tcp_info of linux/tcp.h


def traffic(mode: CommunicationMode, steps: int) -> harness.Figures:
    """Bytes of a step each way, and CPU time of one pserver."""
    ids = [batch[0].reshape(-1) for batch in ctr_data.w1_batches(0, 16)]
    distinct = [unique(each)[0] for each in ids]
    with harness.daemons(PSERVERS, "--unix-dir=off") as daemons:
        plan = w1_plan([daemon.endpoint for daemon in daemons], mode)
        with communicating(plan, mode) as communicator:
            train(communicator, plan, distinct, WARM_UP_STEPS)
            before, cpu = socket_bytes(), scheduled_s(daemons[0].pid)
            train(communicator, plan, distinct, steps)
            after, cpu = socket_bytes(), scheduled_s(daemons[0].pid) - cpu
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
    """The communicator of a single trainer."""
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
    """Run steps without computing; all of them are in the tables on return."""
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
    """The steps that are sent; None for a communicator that sends each step before it ends."""
    count = communicator.counters.snapshot().get("steps_sent")
    return None if count is None else int(count)


def socket_bytes() -> tuple[int, int]:
    """Bytes sent and received over the open TCP connections of this process."""
    sent = received = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(name))) as found:
            if found.family != socket.AF_UNIX and found.getpeername():
                info = found.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
                sent += struct.unpack_from("Q", info, _BYTES_ACKED)[0]
                received += struct.unpack_from("Q", info, _BYTES_RECEIVED)[0]
    return sent, received
