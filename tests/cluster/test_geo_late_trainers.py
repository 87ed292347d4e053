"""A resumed job of Geo makes a cut while one of its trainers has not joined yet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest

from psrt.communicator.factory import make
from psrt.core import specs
from psrt.pserver.checkpoints import SavedCut, find_cut
from psrt.pserver.serving.service import PserverService
from psrt.pserver.tables import DenseTable
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.storage.locate import directory_at
from tests.cluster.test_geo_resume import checkpoint, pservers
from tests.sim.ledger import PLAN, SHARED, UNIT, gradients_of, ids_of, row_of
from tests.support.cluster import TIMEOUT_S, exported, in_threads
from tests.support.geo import GeoByHand, OwnByHand, with_add
from tests.support.inproc import InprocServer

GEO_PLAN, MODE, STEPS = with_add(PLAN), specs.Geo(update_frequency=2), 5


@contextmanager
def joined(
    servers: list[PserverService], trainers: int, *numbers: int
) -> Iterator[list[GeoByHand]]:
    """Trainers `numbers` of `trainers`, where the cut of the job has left them."""
    with ExitStack() as ends:
        made = []
        for number in numbers:
            hello = pb.Hello(job_id="late", plan_hash=GEO_PLAN.hash(), trainers=trainers)
            hello.mode = specs.to_json(MODE)
            clients = [
                Client(endpoint, number, 1 + number, InprocServer(server.handle), hello)
                for endpoint, server in zip(GEO_PLAN.endpoints, servers, strict=True)
            ]
            own = OwnByHand(PLAN.sparse[0])
            inner = make(MODE, GEO_PLAN, clients, call_timeout_s=TIMEOUT_S, own=own)
            for close in (*(client.close for client in clients), inner.close):
                ends.callback(close)
            made.append(GeoByHand(inner, own))
            made[-1].start(TIMEOUT_S)
        yield made


def train(trainer: GeoByHand, number: int, run: int) -> list[int]:
    """Train some steps, of which a part is pushed; returns their rows."""
    rows = []
    for step in range(STEPS):
        trainer.begin({"emb": ids_of(number, run, step)})
        trainer.continues_at(f"{run}:{step + 1}".__str__)
        trainer.finish(gradients_of(number, run, step))
        rows.append(row_of(number, run, step))
    return rows


def cut_at_rest(servers: list[PserverService], trainers: list[GeoByHand], where: Path) -> SavedCut:
    """A cut of the job while these trainers, all that have joined, do nothing else."""
    with ExitStack() as resting:
        for trainer in trainers:
            resting.enter_context(trainer.inner.at_rest())
        return find_cut(directory_at(where), str(checkpoint(servers)))


@pytest.mark.parametrize("counts", [(2, 2, 2), (3, 2, 2), (3, 2, 3), (3, 2, 1), (1, 2, 2)])
def test_every_step_counts_once_though_a_trainer_joined_behind_a_cut(
    tmp_path: Path, counts: tuple[int, int, int]
) -> None:
    first, second, third = counts
    with pservers(2, tmp_path, None) as servers, joined(servers, first, *range(first)) as all_of:
        rows = [row for number, each in enumerate(all_of) for row in train(each, number, 0)]
        cut = cut_at_rest(servers, all_of, tmp_path)
    with pservers(2, tmp_path, cut) as servers, joined(servers, second, 1) as others:
        rows += train(others[0], 1, 1)
        cut = cut_at_rest(servers, others, tmp_path)
    with pservers(2, tmp_path, cut) as servers, joined(servers, third, *range(third)) as all_of:
        in_threads([lambda each=each: each.stop(TIMEOUT_S) for each in all_of])
        held = {row: float(values[0]) for row, values in exported(servers, "emb").items()}
        dense = [t.read()[0] for s in servers for t in s.tables.all() if isinstance(t, DenseTable)]

    total = UNIT * len(rows)
    assert held == {**dict.fromkeys(rows, UNIT), SHARED: total}
    for values in dense:
        np.testing.assert_array_equal(values, np.full_like(values, total))
