"""A whole cluster in one process: real services, communicators and executors, no sockets.

Trainers are threads; every frame is encoded and decoded. `train` returns what the pservers hold
when all trainers have completed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

import psrt
from psrt.communicator.base import Communicator
from psrt.communicator.factory import make
from psrt.core.specs import CommunicationMode, Geo, Sync, to_json
from psrt.core.types import F32
from psrt.graph.program import Program
from psrt.partition.plan import PartitionPlan, build_plan
from psrt.partition.slicing import DEFAULT_MAX_BLOCK_SIZE
from psrt.partition.transpile import program_for
from psrt.pserver.serving.service import PserverService
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.trainer.inputs.prefetch import BatchPreparer
from psrt.trainer.training.local_parameters import LocalDenseParameters
from psrt.trainer.training.run_options import RunOptions
from psrt.trainer.training.training_run import TrainingRun
from tests.support.inproc import InprocServer

TIMEOUT_S = 60.0

Feed = dict[str, np.ndarray]


@dataclass
class Outcome:
    """Parameters after training: whole dense arrays, and the touched rows of each table by id.

    `losses` and `replicas`, the dense parameters each trainer has in the end, are by trainer.
    """

    dense: dict[str, F32]
    rows: dict[str, dict[int, F32]]
    losses: list[list[float]] = field(default_factory=list)
    replicas: list[dict[str, F32]] = field(default_factory=list)


@contextmanager
def services(count: int) -> Iterator[list[PserverService]]:
    made = [PserverService(stripes=4, wait_timeout_s=TIMEOUT_S) for _ in range(count)]
    for service in made:
        service.start()
    try:
        yield made
    finally:
        for service in made:
            service.stop()


def connect(
    servers: Sequence[PserverService],
    plan: PartitionPlan,
    mode: CommunicationMode,
    trainers: int,
    trainer: int,
    own: LocalDenseParameters | None = None,
) -> tuple[Communicator, list[Client]]:
    hello = pb.Hello(job_id="test", plan_hash=plan.hash(), trainers=trainers, mode=to_json(mode))
    clients = [
        Client(endpoint, trainer, 100 + trainer, InprocServer(service.handle), hello)
        for endpoint, service in zip(plan.endpoints, servers, strict=True)
    ]
    made = make(mode, plan, clients, call_timeout_s=TIMEOUT_S, on_wait=print, own=own)
    return made, clients


def train(
    program: Program,
    loss: str,
    feeds: Sequence[Sequence[Feed]],
    pservers: int,
    mode: CommunicationMode | None = None,
    min_block_size: int = 16,
    max_block_size: int = DEFAULT_MAX_BLOCK_SIZE,
) -> Outcome:
    """Train on `feeds[trainer][step]` by `len(feeds)` trainers and `pservers` pservers."""
    mode = mode or Sync()
    endpoints = [f"pserver-{index}:1" for index in range(pservers)]
    parameters = program.parameters.values()
    plan = build_plan(
        *(parameters, endpoints),
        min_block_size=min_block_size,
        max_block_size=max_block_size,
        mode=mode,
    )
    with services(pservers) as servers:
        trainers = [Trainer(program_for(program, mode), loss, mode, batches) for batches in feeds]
        for index, trainer in enumerate(trainers):
            trainer.join(connect(servers, plan, mode, len(feeds), index, trainer.own))
        in_threads([trainer.run for trainer in trainers])
        rows = {spec.name: exported(servers, spec.name) for spec in plan.sparse}
    replicas = [trainer.dense for trainer in trainers]
    return Outcome(replicas[-1], rows, [trainer.losses for trainer in trainers], replicas)


class Trainer:
    """One trainer's `TrainingRun` over some batches."""

    def __init__(
        self, program: Program, loss: str, mode: CommunicationMode, batches: Sequence[Feed]
    ) -> None:
        options = RunOptions(updates_here=isinstance(mode, Geo))
        self._training = TrainingRun(program, psrt.Scope(), options)
        self.own = self._training.local_parameters(mode)
        self._prepared = map(BatchPreparer(program).prepare, batches)
        self._loss = loss
        self.losses: list[float] = []
        self.dense: dict[str, F32] = {}

    def join(self, connected: tuple[Communicator, list[Client]]) -> None:
        self._communicator, self._clients = connected

    def run(self) -> None:
        try:
            self._train()
        finally:
            self._communicator.close()
            for client in self._clients:
                client.close()

    def _train(self) -> None:
        training = self._training
        training.open(self._communicator, TIMEOUT_S)
        training.run_from(self._prepared, [self._loss], self._note)
        self.dense = {n: v.copy() for n, v in self._communicator.stop(TIMEOUT_S).items()}

    def _note(self, batch: object, following: object, fetched: list[np.ndarray]) -> None:
        self.losses.append(float(np.asarray(fetched[0]).reshape(-1)[0]))


def exported(servers: Sequence[PserverService], table: str) -> dict[int, F32]:
    rows: dict[int, F32] = {}
    for service in servers:
        ids, weights, cursor = service.tables.sparse(table).export(0, 1 << 20)
        assert cursor == 0, "the table of a test fits one page"
        rows |= dict(zip(ids.tolist(), weights, strict=True))
    return rows


def in_threads(targets: Sequence[Callable[[], None]]) -> None:
    """Run all at once; raise the first failure."""
    errors: list[BaseException] = []

    def guarded(target: Callable[[], None]) -> None:
        try:
            target()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(target,)) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * TIMEOUT_S)
        assert not thread.is_alive(), "a trainer hangs"
    if errors:
        raise errors[0]
