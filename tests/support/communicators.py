"""Clusters of pservers in process with one communicator per trainer, in any mode.

Tables `w` (two blocks), `b` and `emb` on two pservers, fakes or the real ones. `before` runs a
callback when a call arrives, `fault` injects a network failure. `MODES_UNDER_TEST` lists the facts
of each mode that expected numbers depend on.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from psrt.communicator.base import Communicator
from psrt.communicator.factory import make
from psrt.core import specs
from psrt.core.precision import WirePrecision
from psrt.core.tensors import SelectedRows
from psrt.kernels.tables import initialize
from psrt.partition.plan import PartitionPlan, PlacedBlock
from psrt.pserver.serving.service import PserverService
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.rpc.retry import RetryPolicy
from psrt.rpc.serving import Later, Peer
from psrt.rpc.wire.frames import Message
from tests.support.fake_pserver import FakePserver
from tests.support.geo import GeoByHand, OwnByHand, with_add
from tests.support.inproc import Fault, Faults, InprocServer

T = TypeVar("T")
LONG_S = 120.0
RETRY = RetryPolicy(initial_s=0.001, budget_s=0.2)
"""By the `TickingClock` of a client: some attempts, however slow the host is."""
RATE = np.float32(0.5)
ENDPOINTS = ("ps0:6170", "ps1:6170")
IDS = np.array([5, -9, 2**62, 0, 77, 1234567], np.int64)
UNIFORM = specs.Uniform(-0.1, 0.1)


def plan_of(initializer: specs.Initializer = UNIFORM, rate: float = float(RATE)) -> PartitionPlan:
    """`b` on the second pserver, a block of `w` on each, `emb` on both; SGD everywhere."""
    rule = {
        "initializer": initializer,
        "optimizer": specs.Sgd(),
        "learning_rate": specs.ConstantRate(rate),
    }
    b = specs.DenseTableSpec("b", "b", (3,), 0, 3, seed=1, **rule)
    first = specs.DenseTableSpec("w.block0", "w", (4, 2), 0, 4, seed=2, **rule)
    second = specs.DenseTableSpec("w.block1", "w", (4, 2), 4, 4, seed=2, **rule)
    placed = (PlacedBlock("ps1:6170", b), PlacedBlock("ps0:6170", first))
    placed += (PlacedBlock("ps1:6170", second),)
    return PartitionPlan(ENDPOINTS, placed, (specs.SparseTableSpec("emb", 3, seed=3, **rule),))


PLAN = plan_of()


def in_buckets(plan: PartitionPlan) -> PartitionPlan:
    """`plan` with the block of `w` on the second pserver in a bucket of its own."""
    blocks = [
        replace(block, spec=replace(block.spec, section=int(block.spec.name == "w.block1")))
        for block in plan.blocks
    ]
    return replace(plan, blocks=tuple(blocks))


@dataclass(frozen=True)
class ModeUnderTest:
    """`carrier` is the call that pushes gradients; with `mean` pservers divide their sum by the
    number of trainers that push some."""

    mode: specs.CommunicationMode
    carrier: Method = Method.PUSH
    mean: bool = False

    def part_applied(self, trainers: int) -> np.float32:
        """The applied fraction of the sum of all trainers' gradients."""
        return np.float32(1 / trainers if self.mean else 1)


SYNC = ModeUnderTest(specs.Sync(), Method.EXCHANGE, mean=True)
ASYNC = ModeUnderTest(
    specs.Async(max_merge_var_num=4, send_queue_size=4, min_send_grad_num_before_recv=4)
)
ASYNC_AT_ONCE = ModeUnderTest(
    specs.Async(send_wait_times=0, independent_recv_thread=False), Method.PUSH
)
ASYNC_POOL = ModeUnderTest(specs.Async(send_queue_size=4, thread_pool_size=3))
HALF_ASYNC = ModeUnderTest(specs.HalfAsync())
SSP = ModeUnderTest(specs.Ssp(max_steps_ahead=2))
SSP_IN_STEP = ModeUnderTest(specs.Ssp(max_steps_ahead=0))
GEO = ModeUnderTest(specs.Geo(update_frequency=2))

MODES_UNDER_TEST: dict[str, ModeUnderTest] = {
    "sync": SYNC,
    "async": ASYNC,
    "async-at-once": ASYNC_AT_ONCE,
    "async-pool": ASYNC_POOL,
    "half-async": HALF_ASYNC,
    "ssp": SSP,
    "ssp-in-step": SSP_IN_STEP,
    "geo": GEO,
}


def initial(parameter: str) -> np.ndarray:
    shape, seed = {"b": ((3,), 1), "w": ((4, 2), 2)}[parameter]
    out = np.empty(int(np.prod(shape)), np.float32)
    initialize.fill_block(UNIFORM, seed, 0, out)
    return out.reshape(shape)


def initial_rows(ids: np.ndarray) -> np.ndarray:
    out = np.empty((len(ids), 3), np.float32)
    initialize.fill_rows(UNIFORM, 3, ids, out)
    return out


def gradients(scale: float = 1.0) -> dict[str, np.ndarray | SelectedRows]:
    values = np.arange(18, dtype=np.float32).reshape(6, 3)
    return {
        "b": np.float32(scale) * np.array([1, 2, 3], np.float32),
        "w": np.float32(scale) * np.arange(8, dtype=np.float32).reshape(4, 2),
        "emb": SelectedRows(IDS, np.float32(scale) * values, unique=True),
    }


class TickingClock:
    """Advances by a millisecond with every reading."""

    def __init__(self) -> None:
        self._readings = itertools.count()

    def now(self) -> float:
        return next(self._readings) / 1000


@dataclass
class Cluster:
    """Pservers in process and one communicator per trainer."""

    pservers: list[FakePserver | PserverService]
    plan: PartitionPlan
    mode: specs.CommunicationMode
    retry: RetryPolicy = RETRY
    servers: list[InprocServer] = field(default_factory=list)
    trainers: list[Communicator] = field(default_factory=list)
    before: dict[Method, Callable[[Message], None]] = field(default_factory=dict)
    calls: Counter[Method] = field(default_factory=Counter)
    _replaced: int = 0

    def __post_init__(self) -> None:
        for pserver in self.pservers:
            handler = pserver if isinstance(pserver, FakePserver) else pserver.handle
            self.servers.append(InprocServer(self._counted(handler), Faults()))

    @property
    def trainer(self) -> Communicator:
        return self.trainers[0]

    def fault(self, fault: Fault, method: Method, **script: object) -> None:
        for server in self.servers:
            server.faults.script(fault, method, **script)

    def on_all(self, call: Callable[[Communicator], T]) -> list[T]:
        """`call` by every trainer at the same time, as rounds need it."""
        with ThreadPoolExecutor(len(self.trainers)) as pool:
            return list(pool.map(call, self.trainers, timeout=LONG_S))

    def replace(self, trainer: int) -> Communicator:
        """The communicator of a new process in the place of `trainer`; the test closes it."""
        self._replaced += 1
        incarnation = 1000 * self._replaced + trainer
        clients = self.clients(trainer, len(self.trainers), incarnation)
        return make(self.mode, self.plan, clients, call_timeout_s=LONG_S)

    def clients(self, trainer: int, trainers: int, incarnation: int = 0) -> list[Client]:
        hello = pb.Hello(
            job_id="test",
            plan_hash=self.plan.hash(),
            trainers=trainers,
            mode=specs.to_json(self.mode),
        )
        return [
            Client(
                *(endpoint, trainer, incarnation or 7 + trainer, server, hello),
                retry=self.retry,
                clock=TickingClock(),
            )
            for endpoint, server in zip(ENDPOINTS, self.servers, strict=True)
        ]

    def _counted(self, handler: Callable[[Message, Peer], Message | Later]) -> Callable:
        def handle(message: Message, peer: Peer) -> Message | Later:
            method = Method(message.header.method)
            self.calls[method] += 1
            if method in self.before:
                self.before[method](message)
            return handler(message, peer)

        return handle


class Builder:
    """Builds and closes clusters of one kind of pserver: `fake`, `pserver`, or `buckets`, with two
    buckets on the second pserver."""

    def __init__(self, kind: str, retry: RetryPolicy = RETRY) -> None:
        self._kind, self._retry = kind, retry
        self._ends: list[Callable[[], object]] = []

    def __call__(
        self,
        under_test: ModeUnderTest,
        trainers: int = 1,
        call_timeout_s: float = LONG_S,
        on_wait: Callable[[str], None] = print,
        plan: PartitionPlan = PLAN,
        wire: WirePrecision | None = None,
    ) -> Cluster:
        is_geo = isinstance(under_test.mode, specs.Geo)
        (table,) = plan.sparse
        plan = in_buckets(plan) if self._kind == "buckets" else plan
        plan = with_add(plan) if is_geo else plan
        pservers = [self._pserver(trainers) for _ in ENDPOINTS]
        cluster = Cluster(pservers, plan, under_test.mode, self._retry)
        for trainer in range(trainers):
            clients = cluster.clients(trainer, trainers)
            own = OwnByHand(table) if is_geo else None
            made = make(
                *(under_test.mode, plan, clients),
                call_timeout_s=call_timeout_s,
                on_wait=on_wait,
                own=own,
                wire=wire,
            )
            made = made if own is None else GeoByHand(made, own)
            cluster.trainers.append(made)
            self._ends += [made.close, *(client.close for client in clients)]
        return cluster

    def close(self) -> None:
        for end in self._ends:
            end()

    def _pserver(self, trainers: int) -> FakePserver | PserverService:
        if self._kind == "fake":
            fake = FakePserver(trainers)
            self._ends.append(fake.end)
            return fake
        service = PserverService(stripes=2, wait_timeout_s=LONG_S)
        service.start()
        self._ends.append(service.stop)
        return service
