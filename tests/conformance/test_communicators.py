"""What every communication mode promises the trainer, held against each of them.

Two pservers, in process; the expected numbers are computed here: SGD at rate 0.5 on the sum of all
gradients (Async) or on their mean over the trainers (Sync).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pytest

from psrt.communicator.base import Communicator, Pulled
from psrt.communicator.factory import make
from psrt.core import specs
from psrt.core.errors import ConfigError, DeadlineError, InternalError, UnavailableError
from psrt.core.tensors import SelectedRows
from psrt.kernels import initialize
from psrt.partition.plan import PartitionPlan, PlacedBlock
from psrt.pserver.service import PserverService
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.inproc import Fault, Faults, InprocServer
from psrt.rpc.methods import Method
from psrt.rpc.retry import RetryPolicy
from tests.support.fake_pserver import FakePserver

T = TypeVar("T")
LONG_S = 30.0
RETRY = RetryPolicy(initial_s=0.001, budget_s=0.2)
RATE = np.float32(0.5)
ENDPOINTS = ("ps0:6170", "ps1:6170")
RULE = {
    "initializer": specs.Uniform(-0.1, 0.1),
    "optimizer": specs.Sgd(),
    "learning_rate": specs.ConstantRate(0.5),
}
PLAN = PartitionPlan(
    ENDPOINTS,
    (
        PlacedBlock("ps1:6170", specs.DenseTableSpec("b", "b", (3,), 0, 3, seed=1, **RULE)),
        PlacedBlock(
            "ps0:6170", specs.DenseTableSpec("w.block0", "w", (4, 2), 0, 4, seed=2, **RULE)
        ),
        PlacedBlock(
            "ps1:6170", specs.DenseTableSpec("w.block1", "w", (4, 2), 4, 4, seed=2, **RULE)
        ),
    ),
    (specs.SparseTableSpec("emb", 3, seed=3, **RULE),),
)
IDS = np.array([5, -9, 2**62, 0, 77, 1234567], np.int64)

SYNC = specs.Sync()
ASYNC = specs.Async(max_merge_var_num=4, send_queue_size=4, min_send_grad_num_before_recv=4)
ASYNC_AT_ONCE = specs.Async(
    max_merge_var_num=1, send_queue_size=1, send_wait_times=0, independent_recv_thread=False
)
EVERY_MODE = pytest.mark.parametrize(
    "mode", [SYNC, ASYNC, ASYNC_AT_ONCE], ids=["sync", "async", "async-at-once"]
)


def initial(parameter: str) -> np.ndarray:
    shape, seed = {"b": ((3,), 1), "w": ((4, 2), 2)}[parameter]
    out = np.empty(int(np.prod(shape)), np.float32)
    initialize.fill_block(RULE["initializer"], seed, 0, out)
    return out.reshape(shape)


def initial_rows(ids: np.ndarray) -> np.ndarray:
    out = np.empty((len(ids), 3), np.float32)
    initialize.fill_rows(RULE["initializer"], 3, ids, out)
    return out


def gradients(scale: float = 1.0) -> dict[str, np.ndarray | SelectedRows]:
    values = np.arange(18, dtype=np.float32).reshape(6, 3)
    return {
        "b": np.float32(scale) * np.array([1, 2, 3], np.float32),
        "w": np.float32(scale) * np.arange(8, dtype=np.float32).reshape(4, 2),
        "emb": SelectedRows(IDS, np.float32(scale) * values, unique=True),
    }


@dataclass
class Cluster:
    """Pservers in process and one communicator per trainer."""

    pservers: list[FakePserver | PserverService]
    servers: list[InprocServer]
    trainers: list[Communicator]

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

    def part_applied(self, mode: specs.CommunicationMode) -> np.float32:
        """How much of the sum of all trainers' gradients is applied."""
        return np.float32(1 / len(self.trainers) if isinstance(mode, specs.Sync) else 1)


class Builder:
    """Builds clusters of one kind of pserver and takes them down."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._ends: list[Callable[[], object]] = []

    def __call__(
        self,
        mode: specs.CommunicationMode,
        trainers: int = 1,
        call_timeout_s: float = LONG_S,
        on_wait: Callable[[str], None] = print,
    ) -> Cluster:
        pservers = [self._pserver(trainers) for _ in ENDPOINTS]
        servers = [
            InprocServer(p if isinstance(p, FakePserver) else p.handle, Faults()) for p in pservers
        ]
        hello = pb.Hello(
            job_id="test", plan_hash=PLAN.hash(), trainers=trainers, mode=specs.to_json(mode)
        )
        communicators = []
        for trainer in range(trainers):
            clients = [
                Client(endpoint, trainer, 7 + trainer, server, hello, retry=RETRY)
                for endpoint, server in zip(ENDPOINTS, servers, strict=True)
            ]
            made = make(mode, PLAN, clients, call_timeout_s=call_timeout_s, on_wait=on_wait)
            communicators.append(made)
            self._ends += [made.close, *(client.close for client in clients)]
        return Cluster(pservers, servers, communicators)

    def close(self) -> None:
        for end in self._ends:
            end()

    def _pserver(self, trainers: int) -> FakePserver | PserverService:
        if self._kind == "fake":
            return FakePserver(trainers)
        service = PserverService(stripes=2, wait_timeout_s=LONG_S)
        service.start()
        self._ends.append(service.stop)
        return service


@pytest.fixture(params=["fake", "pserver"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Builder]:
    """Clusters of fakes, and of the pserver that ships."""
    builder = Builder(request.param)
    yield builder
    builder.close()


@pytest.fixture
def fakes() -> Iterator[Builder]:
    """Clusters of fakes, for tests that look inside the pserver."""
    builder = Builder("fake")
    yield builder
    builder.close()


def step(communicator: Communicator, scale: float = 1.0) -> Pulled:
    communicator.begin({"emb": IDS})
    return communicator.finish(gradients(scale))


def train(communicator: Communicator, steps: int = 1) -> dict[str, np.ndarray]:
    """Some steps and a flush, by the end of which every failure has come up."""
    for _ in range(steps):
        step(communicator)
    return communicator.flush(LONG_S)


# --- what a trainer starts from -------------------------------------------------------------------


@EVERY_MODE
def test_start_pulls_whole_parameters_with_their_initial_values(cluster: Builder, mode) -> None:
    dense = cluster(mode).trainer.start(LONG_S)

    assert sorted(dense) == ["b", "w"]
    np.testing.assert_array_equal(dense["b"], initial("b"))
    np.testing.assert_array_equal(dense["w"], initial("w"))


@EVERY_MODE
def test_rows_never_seen_read_as_their_initial_function(cluster: Builder, mode) -> None:
    trainer = cluster(mode).trainer
    trainer.start(LONG_S)

    rows = trainer.pull_rows({"emb": IDS})

    np.testing.assert_array_equal(rows["emb"], initial_rows(IDS))


@EVERY_MODE
def test_start_waits_for_a_pserver_that_is_not_up_and_says_which(cluster: Builder, mode) -> None:
    said: list[str] = []

    def bring_it_up(text: str) -> None:
        said.append(text)
        world.servers[1].stopped = False

    world = cluster(mode, on_wait=bring_it_up)
    world.servers[1].stopped = True

    dense = world.trainer.start(LONG_S)

    assert "ps1:6170" in said[0]
    assert sorted(dense) == ["b", "w"]


@EVERY_MODE
def test_start_gives_up_on_a_pserver_that_never_comes_and_names_it(cluster: Builder, mode) -> None:
    world = cluster(mode)
    world.servers[1].stopped = True

    with pytest.raises(UnavailableError, match="ps1:6170"):
        world.trainer.start(timeout_s=0.2)


# --- steps ----------------------------------------------------------------------------------------


@EVERY_MODE
def test_finish_returns_the_rows_announced_in_the_order_announced(cluster: Builder, mode) -> None:
    trainer = cluster(mode).trainer
    trainer.start(LONG_S)
    wanted = np.array([3, 1, 2**40], np.int64)

    trainer.begin({"emb": wanted})
    pulled = trainer.finish({})

    np.testing.assert_array_equal(pulled.rows["emb"], initial_rows(wanted))


@EVERY_MODE
def test_finish_without_begin_returns_no_rows(cluster: Builder, mode) -> None:
    trainer = cluster(mode).trainer
    trainer.start(LONG_S)
    step(trainer)

    assert trainer.finish(gradients()).rows == {}


@EVERY_MODE
def test_after_a_flush_the_gradients_are_in_rows_and_parameters(cluster: Builder, mode) -> None:
    trainer = cluster(mode).trainer
    trainer.start(LONG_S)

    dense = train(trainer, steps=3)
    rows = trainer.pull_rows({"emb": IDS})["emb"]

    sent = gradients()
    np.testing.assert_allclose(dense["w"], initial("w") - RATE * 3 * sent["w"], rtol=1e-6)
    np.testing.assert_allclose(rows, initial_rows(IDS) - RATE * 3 * sent["emb"].values, rtol=1e-6)


@EVERY_MODE
def test_training_goes_on_after_a_flush(cluster: Builder, mode) -> None:
    trainer = cluster(mode).trainer
    trainer.start(LONG_S)

    train(trainer)
    dense = train(trainer)

    np.testing.assert_allclose(dense["b"], initial("b") - RATE * 2 * gradients()["b"], rtol=1e-6)


@EVERY_MODE
def test_the_executor_may_overwrite_gradients_once_finish_returned(cluster: Builder, mode) -> None:
    trainer = cluster(mode).trainer
    trainer.start(LONG_S)
    own = gradients()

    trainer.finish(own)
    own["w"][:] = np.nan
    own["emb"].values[:] = np.nan

    dense = trainer.stop(LONG_S)
    np.testing.assert_allclose(dense["w"], initial("w") - RATE * gradients()["w"], rtol=1e-6)


@EVERY_MODE
def test_parameters_stay_unchanged_until_the_next_but_one_finish(cluster: Builder, mode) -> None:
    trainer = cluster(mode).trainer
    held = trainer.start(LONG_S)
    copies = {name: values.copy() for name, values in held.items()}

    for _ in range(20):
        fresh = step(trainer).dense
        for name, values in held.items():
            np.testing.assert_array_equal(values, copies[name])
        if fresh:
            held, copies = fresh, {name: values.copy() for name, values in fresh.items()}


def test_sync_gives_every_trainer_the_parameters_of_the_round_it_was_in(cluster: Builder) -> None:
    world = cluster(SYNC, trainers=2)
    world.on_all(lambda trainer: trainer.start(LONG_S))

    pulled = world.on_all(step)

    expected = initial("w") - RATE * gradients()["w"]
    for each in pulled:
        np.testing.assert_allclose(each.dense["w"], expected, rtol=1e-6)
        np.testing.assert_allclose(
            each.rows["emb"], initial_rows(IDS) - RATE * gradients()["emb"].values, rtol=1e-6
        )


def test_async_hands_out_newer_parameters_without_being_asked(cluster: Builder) -> None:
    trainer = cluster(specs.Async(min_send_grad_num_before_recv=1)).trainer
    start = trainer.start(LONG_S)["b"].copy()

    fresh = next(pulled.dense["b"] for _ in range(10_000) if (pulled := step(trainer)).dense)

    assert (fresh < start).all()


def test_async_pushes_carry_the_number_of_steps_they_stand_for(fakes: Builder) -> None:
    world = fakes(ASYNC)
    world.trainer.start(LONG_S)

    for _ in range(7):
        step(world.trainer)
    world.trainer.stop(LONG_S)

    assert [pserver.steps for pserver in world.pservers] == [7, 7]


def test_pushes_carry_the_version_their_gradients_were_computed_on(fakes: Builder) -> None:
    world = fakes(SYNC)
    world.trainer.start(LONG_S)

    for _ in range(3):
        step(world.trainer)

    pushed = [version for table, version in world.pservers[1].versions_pushed if table == "b"]
    assert pushed == [0, 1, 2]


# --- the end --------------------------------------------------------------------------------------


@EVERY_MODE
def test_after_stop_the_gradients_of_all_trainers_are_in_the_parameters(
    cluster: Builder, mode
) -> None:
    world = cluster(mode, trainers=2)
    world.on_all(lambda trainer: trainer.start(LONG_S))
    for _ in range(3):
        world.on_all(step)

    world.trainers[0].stop(LONG_S)
    dense = world.trainers[1].stop(LONG_S)

    total = 6 * world.part_applied(mode) * gradients()["w"]
    np.testing.assert_allclose(dense["w"], initial("w") - RATE * total, rtol=1e-5)


def test_nothing_queued_is_lost_at_stop(fakes: Builder) -> None:
    world = fakes(ASYNC)
    world.trainer.start(LONG_S)
    gate = threading.Event()
    world.fault(Fault.DELAY, Method.PUSH, gate=gate)
    for scale in (1, 2, 4):
        step(world.trainer, scale)

    with ThreadPoolExecutor(1) as pool:
        stopping = pool.submit(world.trainer.stop, LONG_S)
        gate.set()
        dense = stopping.result(LONG_S)

    np.testing.assert_allclose(dense["w"], initial("w") - RATE * 7 * gradients()["w"], rtol=1e-6)
    assert [pserver.steps for pserver in world.pservers] == [3, 3]


@EVERY_MODE
def test_stop_completes_the_trainer_at_every_pserver_once(fakes: Builder, mode) -> None:
    world = fakes(mode)
    world.trainer.start(LONG_S)
    step(world.trainer)

    first = world.trainer.stop(LONG_S)
    second = world.trainer.stop(LONG_S)

    assert first is second
    assert [pserver.live for pserver in world.pservers] == [set(), set()]


@EVERY_MODE
def test_a_trainer_that_stops_early_does_not_hold_up_the_others(cluster: Builder, mode) -> None:
    world = cluster(mode, trainers=2)
    world.on_all(lambda trainer: trainer.start(LONG_S))
    world.on_all(step)

    world.trainers[1].stop(LONG_S)
    step(world.trainers[0])
    dense = world.trainers[0].stop(LONG_S)

    total = (2 * world.part_applied(mode) + 1) * gradients()["b"]
    np.testing.assert_allclose(dense["b"], initial("b") - RATE * total, rtol=1e-6)


@EVERY_MODE
def test_no_thread_is_left_after_stop(cluster: Builder, mode) -> None:
    before = set(threading.enumerate())
    trainer = cluster(mode).trainer
    trainer.start(LONG_S)
    train(trainer, steps=3)
    own = [t for t in set(threading.enumerate()) - before if t.name != "deadlines"]

    trainer.stop(LONG_S)

    for thread in own:
        thread.join(LONG_S)
    assert own
    assert [thread.name for thread in own if thread.is_alive()] == []


@EVERY_MODE
def test_a_step_after_stop_is_refused(cluster: Builder, mode) -> None:
    trainer = cluster(mode).trainer
    trainer.start(LONG_S)
    trainer.stop(LONG_S)

    with pytest.raises(InternalError, match="after it was stopped"):
        trainer.finish(gradients())


# --- failures -------------------------------------------------------------------------------------


@EVERY_MODE
@pytest.mark.parametrize("fault", [Fault.RESET_BEFORE, Fault.RESET_AFTER, Fault.DUPLICATE])
def test_a_push_that_met_a_broken_connection_is_applied_once(
    cluster: Builder, mode, fault: Fault
) -> None:
    world = cluster(mode)
    world.trainer.start(LONG_S)
    world.fault(fault, Method.EXCHANGE if mode is SYNC else Method.PUSH)

    step(world.trainer)
    dense = world.trainer.stop(LONG_S)

    np.testing.assert_allclose(dense["w"], initial("w") - RATE * gradients()["w"], rtol=1e-6)


@EVERY_MODE
def test_a_pserver_that_died_is_named(cluster: Builder, mode) -> None:
    world = cluster(mode)
    world.trainer.start(LONG_S)
    world.servers[1].stop()

    with pytest.raises(UnavailableError, match="ps1:6170"):
        train(world.trainer)


@EVERY_MODE
def test_after_a_failure_every_further_step_fails_too(cluster: Builder, mode) -> None:
    world = cluster(mode)
    world.trainer.start(LONG_S)
    world.servers[0].stop()
    with pytest.raises(UnavailableError):
        train(world.trainer)

    with pytest.raises(UnavailableError, match="ps0:6170"):
        step(world.trainer)


@EVERY_MODE
def test_stop_with_a_dead_pserver_fails_by_name_and_ends(cluster: Builder, mode) -> None:
    world = cluster(mode)
    world.trainer.start(LONG_S)
    world.servers[1].stop()

    with pytest.raises(UnavailableError, match="ps1:6170"):
        world.trainer.stop(timeout_s=1.0)


def test_a_slow_pserver_holds_the_trainer_back_until_a_named_deadline(cluster: Builder) -> None:
    world = cluster(ASYNC_AT_ONCE, call_timeout_s=1.0)
    world.trainer.start(LONG_S)
    gate = threading.Event()
    world.fault(Fault.DELAY, Method.PUSH, gate=gate)

    with pytest.raises(DeadlineError, match=r"PUSH .* to pserver ps\d:6170 got no reply"):
        train(world.trainer, steps=4)

    gate.set()


def test_flush_tells_how_many_gradients_it_could_not_send(cluster: Builder) -> None:
    world = cluster(ASYNC_AT_ONCE)
    world.trainer.start(LONG_S)
    gate = threading.Event()
    world.fault(Fault.DELAY, Method.PUSH, gate=gate)
    for _ in range(2):
        world.trainer.finish(gradients())

    with pytest.raises(DeadlineError, match="3 queued gradients were not sent"):
        world.trainer.flush(timeout_s=0.0)

    gate.set()


# --- counters, choice of mode ---------------------------------------------------------------------


@EVERY_MODE
def test_counters_tell_bytes_in_both_directions(cluster: Builder, mode) -> None:
    trainer = cluster(mode).trainer
    trainer.start(LONG_S)
    started = trainer.counters.snapshot()
    trainer.finish(gradients())
    trainer.flush(LONG_S)

    counted = trainer.counters.snapshot()

    dense_bytes, id_bytes, row_bytes = 4 * 11, 8 * 6, 4 * 18
    assert started["pull_bytes"] == dense_bytes
    assert counted["push_bytes"] == dense_bytes + id_bytes + row_bytes


def test_sync_counts_rounds_and_async_counts_steps_and_pushes(cluster: Builder) -> None:
    sync, asynchronous = cluster(SYNC).trainer, cluster(ASYNC_AT_ONCE).trainer
    for trainer in (sync, asynchronous):
        trainer.start(LONG_S)
        for _ in range(3):
            step(trainer)
        trainer.flush(LONG_S)

    assert sync.counters.snapshot()["rounds"] == 3
    counted = asynchronous.counters.snapshot()
    assert (counted["pushes"], counted["steps_sent"], counted["gradients_merged"]) == (3, 3, 9)


@pytest.mark.parametrize("mode", [specs.HalfAsync(), specs.Geo()])
def test_modes_that_are_not_offered_yet_are_refused_by_name(cluster: Builder, mode) -> None:
    with pytest.raises(ConfigError, match=f"{type(mode).__name__} is not offered yet"):
        cluster(mode)
