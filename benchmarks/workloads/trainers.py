"""Trainers that only pull and push, for benchmarks of tables.

`connected` registers tables at an endpoint as one trainer. A table is a `Parameter` with the fields
that an embedding layer sets. The mode is Async: trainers wait for each other in `start_line` only.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from psrt.communicator.base import Gradients, Versions
from psrt.communicator.requests.pserver_group import PserverGroup
from psrt.config.sections import BUSY_POLL_US
from psrt.core.allocator import keep_freed_memory
from psrt.core.specs import (
    Adagrad,
    Adam,
    Async,
    CommunicationMode,
    ConstantRate,
    Initializer,
    Optimizer,
    Sgd,
    Uniform,
    to_json,
)
from psrt.core.specs.table_options import DEFAULT_OPTIONS, TableOptions
from psrt.core.tensors import SelectedRows
from psrt.core.types import I64
from psrt.graph.program import Parameter
from psrt.kernels.lowlevel.spin import await_input
from psrt.partition.plan import PartitionPlan, build_plan
from psrt.rpc import pb
from psrt.rpc.busy_poll import BusyPoll
from psrt.rpc.client import Client
from psrt.rpc.dialing import Carrier
from psrt.rpc.methods import Method

OPTIMIZERS: dict[str, Optimizer] = {"sgd": Sgd(), "adagrad": Adagrad(), "adam": Adam()}
SMALL = Uniform(-0.05, 0.05)
JOB, TIMEOUT_S = "benchmark", 60.0
FILL_ROWS = 1 << 16


@dataclass(frozen=True)
class Who:
    """A trainer: its number, the number of trainers, and its carrier."""

    number: int = 0
    trainers: int = 1
    carrier: Carrier = "stream"
    incarnation: int = 1


def sparse_table(
    name: str,
    rows: int,
    width: int,
    optimizer: str = "sgd",
    initializer: Initializer = SMALL,
    options: TableOptions = DEFAULT_OPTIONS,
) -> Parameter:
    """A distributed table; the learning rate is 1 for SGD and 0.01 for other optimizers."""
    return Parameter(
        name,
        (rows, width),
        initializer=initializer,
        seed=1,
        sparse=True,
        distributed=True,
        optimizer=OPTIMIZERS[optimizer],
        learning_rate=ConstantRate(1.0 if optimizer == "sgd" else 0.01),
        options=options,
    )


def client_of(plan: PartitionPlan, who: Who, mode: CommunicationMode) -> Client:
    """A client of the only endpoint of `plan`."""
    hello = pb.Hello(job_id=JOB, plan_hash=plan.hash(), trainers=who.trainers, mode=to_json(mode))
    busy_poll = BusyPoll(BUSY_POLL_US, await_input)  # the setting of trainers
    endpoint = plan.endpoints[0]
    return Client(endpoint, who.number, who.incarnation, who.carrier, hello, busy_poll=busy_poll)


@contextlib.contextmanager
def connected(endpoint: str, tables: Sequence[Parameter], who: Who) -> Iterator[PserverGroup]:
    """A connection of trainer `who` to one pserver, with `tables` registered."""
    plan = build_plan(tables, [endpoint])
    client = client_of(plan, who, Async())
    keep_freed_memory()  # trainer processes set it, too
    pservers = PserverGroup(plan, [client], call_timeout_s=TIMEOUT_S)
    try:
        pservers.connect(TIMEOUT_S, print)
        yield pservers
    finally:
        pservers.close()
        client.close()


def push(pservers: PserverGroup, gradients: Gradients, versions: Versions | None = None) -> None:
    """Push gradients by table, computed on parameters of `versions`."""
    requests = pservers.router.requests()
    pservers.router.push(requests, gradients, versions or {})
    pservers.call(Method.PUSH, requests)


def pull_and_push(pservers: PserverGroup, table: str, ids: I64) -> None:
    """Run a step: pull the rows of distinct `ids`, push 1e-3 × rows as their gradient."""
    rows, versions = pservers.pull_rows({table: ids})
    gradient = SelectedRows(ids, rows[table] * np.float32(1e-3), unique=True)
    push(pservers, {table: gradient}, versions)


def fill(pservers: PserverGroup, table: str, first: int, end: int, width: int) -> None:
    """Create rows `first` … `end` − 1 by gradients of zeros."""
    for start in range(first, end, FILL_ROWS):
        ids = np.arange(start, min(start + FILL_ROWS, end), dtype=np.int64)
        zeros = np.zeros((len(ids), width), np.float32)
        push(pservers, {table: SelectedRows(ids, zeros, unique=True)})


def distinct_ids(rows: int, count: int, seed: int) -> I64:
    """`count` distinct ids below `rows`, each far from the next."""
    rng = np.random.default_rng(seed)
    start, step = int(rng.integers(rows)), int(rows * 0.618) | 1
    while math.gcd(step, rows) > 1:
        step += 2
    return (start + step * np.arange(min(count, rows), dtype=np.int64)) % rows


def start_line(pservers: PserverGroup, timeout_s: float = TIMEOUT_S) -> None:
    """Wait until all trainers of the job have called this."""
    pservers.meet("start line", 1, 1, timeout_s)
