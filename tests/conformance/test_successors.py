"""A process that takes a trainer's place, in every mode that pushes gradients: each step counts
once, wherever the former process died, and in Sync the bits are those of a job without it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from psrt.communicator.base import Beginning, Communicator, Position, no_position
from psrt.core import specs
from psrt.core.errors import PsrtError
from psrt.core.tensors import SelectedRows
from psrt.rpc.methods import Method
from tests.support.communicators import (
    ASYNC,
    ASYNC_AT_ONCE,
    ASYNC_POOL,
    HALF_ASYNC,
    IDS,
    LONG_S,
    SSP,
    Builder,
    Cluster,
    ModeUnderTest,
)
from tests.support.inproc import Fault

STEPS = 4
SYNC = ModeUnderTest(specs.Sync(on_trainer_loss="wait"), Method.EXCHANGE, mean=True)
MODES = {
    "sync": SYNC,
    "async": ASYNC,
    "async-at-once": ASYNC_AT_ONCE,
    "async-pool": ASYNC_POOL,
    "half-async": HALF_ASYNC,
    "ssp": SSP,
}
every_mode = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)


class Process:
    """One process of the trainer; its position is the number of steps behind it.

    With `follows_values` the gradients are functions of the values they are computed on.
    """

    def __init__(self, communicator: Communicator, follows_values: bool) -> None:
        self._communicator, self._follows = communicator, follows_values
        self.first = 0

    def train(self, steps: int) -> None:
        communicator = self._communicator
        communicator.begins_at(self._begin)
        dense = communicator.start(LONG_S)
        rows = communicator.pull_rows({"emb": IDS})["emb"]
        for step in range(self.first, steps):
            communicator.begin({"emb": IDS})
            communicator.marks(str(step + 1))
            pulled = communicator.finish(self._gradients(step, dense, rows))
            dense, rows = pulled.dense or dense, pulled.rows["emb"]
        communicator.flush(LONG_S)

    def _begin(self, found: Beginning) -> Position:
        self.first = int(found.reached or 0)
        self._communicator.marks(str(self.first))
        return no_position

    def _gradients(
        self, step: int, dense: dict[str, np.ndarray], rows: np.ndarray
    ) -> dict[str, np.ndarray | SelectedRows]:
        weight = np.float32(self._follows)
        whole = {"b": np.ones(3, np.float32), "w": np.full((4, 2), 2.0, np.float32)}
        sums = np.float32(sum(values.sum() for values in dense.values()) + rows.sum())
        given = {name: part * (1 + step + weight * sums) for name, part in whole.items()}
        of_rows = np.full_like(rows, 1 + step) + weight * sums
        return {**given, "emb": SelectedRows(IDS, of_rows, unique=True)}


@pytest.fixture(params=["real", "buckets"])
def build(request: pytest.FixtureRequest) -> Iterator[Builder]:
    builder = Builder(request.param)
    yield builder
    builder.close()


def held(cluster: Cluster) -> dict[str, np.ndarray]:
    trainer = cluster.replace(0)
    dense = {name: values.copy() for name, values in trainer.start(LONG_S).items()}
    rows = trainer.pull_rows({"emb": IDS})["emb"].copy()
    trainer.close()
    return {**dense, "emb": rows}


def undisturbed(build: Builder, mode: ModeUnderTest, follows_values: bool) -> dict[str, np.ndarray]:
    cluster = build(mode)
    Process(cluster.trainer, follows_values).train(STEPS)
    return held(cluster)


def dies(cluster: Cluster, process: Process, pserver: int, after: int, method: Method) -> bool:
    """Train until the calls number `after` and later of a pserver are lost; False at the end."""
    server = cluster.servers[pserver]
    server.faults.script(Fault.RESET_BEFORE, method, after=after, times=1 << 30)
    try:
        process.train(STEPS)
    except PsrtError:
        return True
    finally:
        cluster.trainer.close()
        server.faults._lines.clear()
    return False


def goes_on(cluster: Cluster, follows_values: bool) -> Process:
    communicator = cluster.replace(0)
    successor = Process(communicator, follows_values)
    successor.train(STEPS)
    communicator.close()
    return successor


@every_mode
@pytest.mark.parametrize("pserver", [0, 1])
@pytest.mark.parametrize("after", range(STEPS + 1))
def test_each_step_counts_once_wherever_its_trainer_dies(
    build: Builder, mode: ModeUnderTest, pserver: int, after: int
) -> None:
    expected, cluster = undisturbed(build, mode, False), build(mode)

    dies(cluster, Process(cluster.trainer, False), pserver, after, mode.carrier)
    goes_on(cluster, False)

    found = held(cluster)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("pserver", [0, 1])
@pytest.mark.parametrize("after", range(STEPS))
def test_in_sync_a_step_is_computed_again_on_the_values_of_the_first_time(
    build: Builder, pserver: int, after: int
) -> None:
    expected, cluster = undisturbed(build, SYNC, True), build(SYNC)

    assert dies(cluster, Process(cluster.trainer, True), pserver, after, SYNC.carrier)
    goes_on(cluster, True)

    found = held(cluster)
    assert [name for name in expected if not np.array_equal(expected[name], found[name])] == []


def test_a_successor_that_dies_too_leaves_its_place_to_another(build: Builder) -> None:
    expected, cluster = undisturbed(build, SYNC, True), build(SYNC)
    assert dies(cluster, Process(cluster.trainer, True), 1, 3, SYNC.carrier)

    communicator = cluster.replace(0)
    second = Process(communicator, True)
    cluster.servers[1].faults.script(Fault.RESET_BEFORE, Method.EXCHANGE, times=1 << 30)
    with pytest.raises(PsrtError):
        second.train(STEPS)
    communicator.close()
    cluster.servers[1].faults._lines.clear()
    third = goes_on(cluster, True)

    assert 0 < third.first == second.first
    found = held(cluster)
    assert [name for name in expected if not np.array_equal(expected[name], found[name])] == []


def test_a_caller_without_marks_begins_anew(build: Builder) -> None:
    cluster = build(SYNC)
    assert dies(cluster, Process(cluster.trainer, False), 1, 3, SYNC.carrier)

    other = cluster.replace(0)
    other.start(LONG_S)
    before = other.pull_rows({"emb": IDS})["emb"].copy()
    other.begin({"emb": IDS})
    pushed = SelectedRows(IDS, np.ones_like(before), unique=True)
    after = other.finish({"emb": pushed}).rows["emb"]
    other.close()

    assert (after < before).all()
