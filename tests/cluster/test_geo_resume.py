"""Geo trainers that go on from a cut, with real services, communicators and executors."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest

import psrt
from psrt.communicator.base import Communicator
from psrt.core import specs
from psrt.partition.plan import PartitionPlan, build_plan
from psrt.partition.transpile import program_for
from psrt.pserver.checkpoints import SavedCut, Settings, find_cut
from psrt.pserver.serving.service import PserverService
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.storage.locate import directory_at
from psrt.trainer.inputs.prefetch import BatchPreparer
from psrt.trainer.training.run_options import RunOptions
from psrt.trainer.training.training_run import TrainingRun
from tests.cluster.test_geo_training import RULES, alone, batches, model
from tests.support.cluster import TIMEOUT_S, Feed, connect, exported
from tests.support.inproc import InprocServer

BEFORE, AFTER, MOST_STEPS = 7, 9, 3000


@contextmanager
def pservers(count: int, where: Path, resumed: SavedCut | None) -> Iterator[list[PserverService]]:
    """Pservers that write their cuts to `where`; they begin with `resumed`."""
    made: list[PserverService] = []
    with ExitStack() as ends:
        for _ in range(count):
            service = PserverService(
                stripes=2,
                wait_timeout_s=TIMEOUT_S,
                cuts=Settings(directory_at(where)),
                resumed=resumed,
                carrier=lambda endpoint: InprocServer(made[0].handle)(endpoint),
            )
            made.append(service)
            service.start()
            ends.callback(service.stop)
        yield made


class GeoTrainer:
    """One trainer over a program, from a position that counts its steps."""

    def __init__(
        self,
        optimizer: str,
        mode: specs.Geo,
        servers: list[PserverService],
        replicas: int = 1,
        trainers: int = 1,
    ) -> None:
        self.program, self.loss = model(optimizer)
        endpoints = [f"pserver-{index}:1" for index in range(len(servers))]
        parameters = self.program.parameters.values()
        self.plan: PartitionPlan = build_plan(parameters, endpoints, min_block_size=16, mode=mode)
        options = RunOptions(updates_here=True, replicas=replicas)
        self.run = TrainingRun(program_for(self.program, mode), psrt.Scope(), options)
        own = self.run.local_parameters(mode)
        self.communicator: Communicator
        self.communicator, self._clients = connect(servers, self.plan, mode, trainers, 0, own)
        self.run.open(self.communicator, TIMEOUT_S)

    def train(self, feeds: list[Feed], until: threading.Event | None = None) -> None:
        """Train on `feeds`, or until the event is set behind `BEFORE` steps."""
        prepared = map(BatchPreparer(self.run.program).prepare, feeds)
        steps = itertools.count(1)
        self.run.run_from(
            prepared,
            [self.loss],
            lambda *step: None,
            stop=until,
            position=lambda batch, following, fetched: str(next(steps)).__str__,
        )

    def close(self) -> None:
        self.communicator.close()
        for client in self._clients:
            client.close()
        self.run.close()


def checkpoint(servers: list[PserverService]) -> int:
    """Ask for a cut, as a user does; returns its number."""
    client = Client("pserver-0:1", 0, 1, InprocServer(servers[0].handle), pb.Hello())
    try:
        return int(client.call(Method.CHECKPOINT, timeout_s=TIMEOUT_S).header.cut.number)
    finally:
        client.close()


def killed_with_a_cut(
    optimizer: str, mode: specs.Geo, feeds: list[Feed], where: Path, replicas: int
) -> SavedCut:
    """Train until a cut is complete, then leave everything behind."""
    with pservers(2, where, None) as servers, ThreadPoolExecutor(1) as pool:
        trainer, ended = GeoTrainer(optimizer, mode, servers, replicas), threading.Event()
        trainer.train(feeds[:BEFORE])
        asked: Future[int] = pool.submit(checkpoint, servers)
        asked.add_done_callback(lambda future: ended.set())
        trainer.train(feeds[BEFORE:], ended)
        asked.result(TIMEOUT_S)
        trainer.close()
    return find_cut(directory_at(where), "latest")


@pytest.mark.parametrize("optimizer", RULES)
@pytest.mark.parametrize(("every", "replicas"), [(1, 1), (4, 1), (100, 2)])
def test_one_trainer_that_was_killed_ends_with_exactly_what_local_training_gives(
    tmp_path: Path, optimizer: str, every: int, replicas: int
) -> None:
    feeds = batches(0, 200)
    endless = [feeds[step % len(feeds)] for step in range(MOST_STEPS)]
    cut = killed_with_a_cut(optimizer, specs.Geo(every), endless, tmp_path, replicas)
    done = BEFORE + int(cut.position_of(0))

    with pservers(3, tmp_path, cut) as servers:
        trainer = GeoTrainer(optimizer, specs.Geo(every), servers, replicas)
        assert trainer.communicator.resumed.cut == cut.number
        trainer.train(endless[done : done + AFTER])
        dense = trainer.communicator.stop(TIMEOUT_S)
        (rows,) = [exported(servers, spec.name) for spec in trainer.plan.sparse]
        trainer.close()

    truth = alone(optimizer, endless[: done + AFTER])
    compare = np.testing.assert_array_equal if replicas == 1 else _nearly
    for name, values in dense.items():
        compare(values, truth.dense[name], name)
    (expected,) = truth.rows.values()
    for row_id, row in rows.items():
        compare(row, expected[row_id], str(row_id))


def _nearly(values: np.ndarray, expected: np.ndarray, name: str) -> None:
    """Two replicas add gradients in another order than one executor."""
    np.testing.assert_allclose(values, expected, rtol=2e-4, atol=2e-5, err_msg=name)
