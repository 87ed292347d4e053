"""The Geo communicator against the published scheme in plain numpy, step by step.

Pservers are fakes whose answers to pushes a test holds back, so that each exchange is merged where
the test expects it. The real pserver is tested in tests/cluster/test_geo_training.py.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from psrt.communicator.factory import make
from psrt.communicator.geo.geo_table import GeoTable
from psrt.core import specs
from psrt.core.errors import ConfigError, DeadlineError, InternalError, UnavailableError
from psrt.core.tensors import SelectedRows
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.rpc.serving import Later, Peer
from psrt.rpc.wire.frames import Message
from tests.support.carriers import eventually
from tests.support.communicators import RETRY, TickingClock
from tests.support.fake_pserver import FakePserver
from tests.support.geo import (
    RATE,
    SHAPES,
    GeoByHand,
    OwnByHand,
    Simulated,
    SimulatedPserver,
    initial,
    initial_row,
    plan_of,
    rows_of,
)
from tests.support.inproc import Fault, Faults, InprocServer

LONG_S = 30.0
ENDPOINTS = ("ps0:1", "ps1:1")
IDS = [5, -9, 2**62, 0, 77, 1234567]


class Answers:
    """Holds the answers to pushes back: those of a trainer's exchanges after `let` many."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._let: dict[int, float] = {}

    def let(self, trainer: int, exchanges: float) -> None:
        with self._changed:
            self._let[trainer] = exchanges
            self._changed.notify_all()

    def wait(self, header: pb.Header) -> None:
        with self._changed:
            is_let = lambda: header.push_key.sequence <= self._let.get(header.trainer, math.inf)  # noqa: E731
            assert self._changed.wait_for(is_let, LONG_S)


class World:
    """Fake pservers, whose answers can be held back, and Geo trainers."""

    def __init__(self, trainers: int, every: int, pservers: int, call_timeout_s: float) -> None:
        self.answers = Answers()
        self.fakes = [FakePserver(trainers) for _ in range(pservers)]
        self.servers = [InprocServer(self._holding(fake), Faults()) for fake in self.fakes]
        self._plan, self._mode = plan_of(ENDPOINTS[:pservers]), specs.Geo(every)
        self._clients: list[Client] = []
        self.trainers = [
            self._trainer(number, trainers, call_timeout_s) for number in range(trainers)
        ]

    def start(self) -> None:
        for trainer in self.trainers:
            trainer.start(LONG_S)

    def pushed(self, steps: int) -> None:
        """Wait until every pserver has counted so many steps."""
        is_there = lambda: all(fake.steps == steps for fake in self.fakes)  # noqa: E731
        eventually(is_there, f"pushes of {steps} steps")

    def finish(self) -> list[dict[str, np.ndarray]]:
        """Stop all trainers; returns the parameters of each."""
        for trainer in self.trainers:
            trainer.flush(LONG_S, final=True)
        with ThreadPoolExecutor(len(self.trainers)) as pool:
            return list(pool.map(lambda trainer: trainer.stop(LONG_S), self.trainers))

    def close(self) -> None:
        for number, trainer in enumerate(self.trainers):
            self.answers.let(number, math.inf)
            trainer.close()
        for client in self._clients:
            client.close()

    def _trainer(self, number: int, trainers: int, call_timeout_s: float) -> GeoByHand:
        hello = pb.Hello(
            job_id="test",
            plan_hash=self._plan.hash(),
            trainers=trainers,
            mode=specs.to_json(self._mode),
        )
        clients = [
            Client(
                *(endpoint, number, 7 + number, server, hello), retry=RETRY, clock=TickingClock()
            )
            for endpoint, server in zip(self._plan.endpoints, self.servers, strict=True)
        ]
        self._clients += clients
        own = OwnByHand()
        made = make(self._mode, self._plan, clients, call_timeout_s=call_timeout_s, own=own)
        return GeoByHand(made, own)

    def _holding(self, fake: FakePserver) -> Callable[[Message, Peer], Message | Later]:
        def handle(message: Message, peer: Peer) -> Message | Later:
            reply = fake(message, peer)
            if message.header.method == Method.PUSH:
                self.answers.wait(message.header)
            return reply

        return handle


Builder = Callable[..., World]


@pytest.fixture
def world() -> Iterator[Builder]:
    made: list[World] = []

    def build(
        trainers: int = 1, every: int = 2, pservers: int = 2, call_timeout_s: float = LONG_S
    ) -> World:
        made.append(World(trainers, every, pservers, call_timeout_s))
        return made[-1]

    yield build
    for each in made:
        each.close()


def gradients(seed: int, rows: int = 3) -> dict[str, np.ndarray | SelectedRows]:
    rng = np.random.default_rng(seed)
    ids = rng.choice(np.array(IDS, np.int64), rows, replace=False)
    values = rng.normal(size=(rows, 3)).astype(np.float32)
    return {
        "b": rng.normal(size=3).astype(np.float32),
        "w": rng.normal(size=(4, 2)).astype(np.float32),
        "emb": SelectedRows(ids, values, unique=True),
    }


def assert_equal(trainer: GeoByHand, expected: Simulated) -> None:
    for name in SHAPES:
        np.testing.assert_array_equal(trainer.own.arrays[name], expected.train[name], name)
    for row_id, row in rows_of(trainer.pull_rows, IDS).items():
        np.testing.assert_array_equal(row, expected.train.get(row_id, initial_row(row_id)))


# --- the scheme -----------------------------------------------------------------------------------


@pytest.mark.parametrize("pservers", [1, 2])
@pytest.mark.parametrize("every", [1, 3])
def test_two_trainers_follow_the_published_scheme_step_by_step(
    world: Builder, every: int, pservers: int
) -> None:
    made = world(trainers=2, every=every, pservers=pservers)
    made.start()
    made.answers.let(0, 0)
    made.answers.let(1, 0)
    pserver = SimulatedPserver(2)
    expected = [Simulated(number, 2, pserver) for number in range(2)]
    counted = 0

    for step in range(1, 4 * every + 1):
        for number, (trainer, simulated) in enumerate(zip(made.trainers, expected, strict=True)):
            grads = gradients(10 * step + number)
            exchanges, is_between = divmod(step, every)
            if not is_between:
                made.answers.let(number, exchanges - 1)
            trainer.finish(grads)
            simulated.step(grads)
            if not is_between:
                simulated.merge()
                simulated.exchange()
                counted += every
                made.pushed(counted)
            assert_equal(trainer, simulated)


def test_after_the_end_all_replicas_are_the_pservers_parameters_to_the_bit(world: Builder) -> None:
    made = world(trainers=3, every=2)
    made.start()
    for step in range(7):
        for number, trainer in enumerate(made.trainers):
            trainer.finish(gradients(10 * step + number))

    first, *others = made.finish()

    rows = [
        {i: trainer.own.tables["emb"].read(np.array([i])) for i in IDS} for trainer in made.trainers
    ]
    for dense, of_table in zip(others, rows[1:], strict=True):
        for name in SHAPES:
            np.testing.assert_array_equal(dense[name], first[name])
        for row_id in IDS:
            np.testing.assert_array_equal(of_table[row_id], rows[0][row_id])
    np.testing.assert_array_equal(first["b"], made.fakes[0].tables["b"].values)
    there = {row_id: row for fake in made.fakes for row_id, row in fake.tables["emb"].rows.items()}
    for row_id, row in there.items():
        np.testing.assert_array_equal(rows[0][row_id][0], row)


def test_in_the_end_pservers_have_the_sum_of_what_all_trainers_did(world: Builder) -> None:
    made = world(trainers=2, every=3)
    made.start()
    total = {"b": np.zeros(3), "w": np.zeros((4, 2))}
    rows = {row_id: np.zeros(3) for row_id in IDS}
    for step in range(8):
        for number, trainer in enumerate(made.trainers):
            grads = gradients(10 * step + number)
            trainer.finish(grads)
            for name in SHAPES:
                total[name] += grads[name]
            for row_id, row in zip(grads["emb"].ids.tolist(), grads["emb"].values, strict=True):
                rows[row_id] += row

    dense, _ = made.finish()

    for name in SHAPES:
        np.testing.assert_allclose(dense[name], initial(name) - RATE * total[name], atol=1e-5)
    table = made.trainers[0].own.tables["emb"]
    for row_id in IDS:
        expected = initial_row(row_id) - RATE * rows[row_id]
        np.testing.assert_allclose(table.read(np.array([row_id]))[0], expected, atol=1e-5)


@pytest.mark.parametrize("every", [1, 2, 3, 50])
def test_one_trainer_ends_with_exactly_what_it_trained(world: Builder, every: int) -> None:
    made = world(trainers=1, every=every)
    made.start()
    (trainer,) = made.trainers
    alone = Simulated(0, 1, SimulatedPserver(1))

    for step in range(12):
        grads = gradients(step)
        trainer.finish(grads)
        alone.step(grads)
        assert_equal(trainer, alone)
    (dense,) = made.finish()

    for name in SHAPES:
        np.testing.assert_array_equal(dense[name], alone.train[name])
    there = {row_id: row for fake in made.fakes for row_id, row in fake.tables["emb"].rows.items()}
    for row_id in IDS:
        np.testing.assert_array_equal(there[row_id], alone.train[row_id])


def test_a_change_too_large_for_its_rounding_is_pushed_to_the_last_bit(world: Builder) -> None:
    made = world(trainers=1, every=2)
    made.start()
    (trainer,) = made.trainers
    gradient = np.array([1e8, -1e8, 3.0], np.float32)

    trainer.finish({"b": gradient})
    trainer.flush(LONG_S)
    trainer.finish({"b": -gradient + np.float32(1e-3)})
    (dense,) = made.finish()

    np.testing.assert_array_equal(dense["b"], made.fakes[0].tables["b"].values)
    np.testing.assert_array_equal(trainer.own.arrays["b"], dense["b"])


# --- when things travel ---------------------------------------------------------------------------


def test_only_touched_rows_are_pushed_and_only_rows_of_others_are_pulled(world: Builder) -> None:
    made = world(trainers=2, every=1, pservers=1)
    made.start()
    for number, (trainer, ids) in enumerate(zip(made.trainers, ([1, 2], [2, 3]), strict=True)):
        rows = SelectedRows(np.array(ids), np.ones((2, 3), np.float32), unique=True)
        trainer.finish({"emb": rows})
        made.pushed(number + 1)
    for trainer in made.trainers:
        trainer.flush(LONG_S)

    first, second = (trainer.counters.snapshot() for trainer in made.trainers)

    assert first["rows_pushed"] == second["rows_pushed"] == 2 + 2  # a half, then the other half
    assert first["rows_pulled"] == 2
    assert {row_id for _, ids in made.fakes[0].tables["emb"].pushed for row_id in ids} == {1, 2, 3}


def test_training_goes_on_while_an_exchange_is_under_way(world: Builder) -> None:
    made = world(trainers=1, every=3)
    made.start()
    made.answers.let(0, 0)
    (trainer,) = made.trainers

    for step in range(5):  # the third starts an exchange that is not answered
        trainer.finish(gradients(step))

    assert trainer.counters.snapshot()["exchanges"] == 1
    assert trainer.own.other_steps == []


def test_a_step_waits_when_an_exchange_is_due_and_the_last_is_not_back(world: Builder) -> None:
    made = world(trainers=1, every=1)
    made.start()
    (trainer,) = made.trainers
    made.answers.let(0, 0)
    trainer.finish(gradients(0))

    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(trainer.finish, gradients(1))
        made.pushed(1)
        assert not second.done()
        made.answers.let(0, 1)
        second.result(LONG_S)

    assert trainer.counters.snapshot()["exchanges"] == 2
    assert trainer.counters.snapshot()["geo_wait_s_events"] == 1


def test_a_wait_for_an_exchange_ends_with_the_name_of_the_pserver(world: Builder) -> None:
    made = world(trainers=1, every=1, call_timeout_s=0.2)
    made.start()
    (trainer,) = made.trainers
    gate = threading.Event()
    made.servers[1].faults.script(Fault.DELAY, Method.PUSH, gate=gate, times=10)
    trainer.finish(gradients(0))

    with pytest.raises((DeadlineError, UnavailableError), match="ps1:1"):
        trainer.finish(gradients(1))
    with pytest.raises((DeadlineError, UnavailableError), match="ps1:1"):
        trainer.finish(gradients(2))
    gate.set()


def test_pushes_carry_the_steps_they_stand_for_and_answers_tell_those_of_others(
    world: Builder,
) -> None:
    made = world(trainers=2, every=2)
    made.start()
    first, second = made.trainers
    for step in range(5):
        first.finish(gradients(step))
    first.flush(LONG_S)

    for step in range(2):
        second.finish(gradients(step))
    second.flush(LONG_S)

    assert [fake.steps for fake in made.fakes] == [7, 7]
    assert first.own.other_steps[-1] == 0
    assert second.own.other_steps[-1] == 5
    assert second.own.tables["emb"].other_steps == 5
    assert first.counters.snapshot()["steps_sent"] == 5


@pytest.mark.parametrize("fault", [Fault.RESET_BEFORE, Fault.RESET_AFTER, Fault.DUPLICATE])
def test_a_push_whose_answer_is_lost_counts_once(world: Builder, fault: Fault) -> None:
    made = world(trainers=1, every=2)
    made.start()
    (trainer,) = made.trainers
    for server in made.servers:
        server.faults.script(fault, Method.PUSH)
    alone = Simulated(0, 1, SimulatedPserver(1))

    for step in range(6):
        trainer.finish(gradients(step))
        alone.step(gradients(step))
    (dense,) = made.finish()

    for name in SHAPES:
        np.testing.assert_array_equal(dense[name], alone.train[name])
    assert [fake.steps for fake in made.fakes] == [6, 6]


def test_pushes_carry_the_version_that_was_agreed_on_last(world: Builder) -> None:
    made = world(trainers=1, every=1, pservers=1)
    made.start()
    (trainer,) = made.trainers

    for step in range(3):
        trainer.finish(gradients(step))
        made.pushed(step + 1)

    pushed = made.fakes[0].versions_pushed
    assert [version for table, version in pushed if table == "emb"] == [0, 1, 2]
    assert [version for table, version in pushed if table == "b"] == [0, 1, 2]


# --- beginning and end ----------------------------------------------------------------------------


def test_a_trainer_that_joins_late_begins_with_what_others_have_done(world: Builder) -> None:
    made = world(trainers=2, every=1)
    first, second = made.trainers
    first.start(LONG_S)
    first.finish(gradients(1))
    first.flush(LONG_S)

    dense = second.start(LONG_S)

    for name in SHAPES:
        np.testing.assert_array_equal(dense[name], first.own.arrays[name])
    theirs, mine = rows_of(first.pull_rows, IDS), rows_of(second.pull_rows, IDS)
    for row_id in IDS:
        np.testing.assert_array_equal(mine[row_id], theirs[row_id])


def test_a_trainer_that_finishes_early_waits_and_gets_what_the_others_do_after_it(
    world: Builder,
) -> None:
    made = world(trainers=2, every=2)
    made.start()
    early, late = made.trainers
    early.finish(gradients(1))

    with ThreadPoolExecutor(1) as pool:
        stopping = pool.submit(early.stop, LONG_S)
        for step in range(2, 9):
            late.finish(gradients(step))
        assert not stopping.done()
        last = late.stop(LONG_S)
        first = stopping.result(LONG_S)

    for name in SHAPES:
        np.testing.assert_array_equal(first[name], last[name])
    assert [fake.live for fake in made.fakes] == [set(), set()]


def test_a_trainer_that_was_asked_to_end_waits_for_no_other(world: Builder) -> None:
    made = world(trainers=2, every=2)
    made.start()
    asked, other = made.trainers
    asked.finish(gradients(1))

    for client in made._clients[:2]:
        client.hurry()
    asked.stop(LONG_S)

    assert [fake.live for fake in made.fakes] == [{1}, {1}]
    dense = other.stop(LONG_S)
    np.testing.assert_allclose(dense["b"], initial("b") - RATE * gradients(1)["b"], atol=1e-6)


def test_a_wait_for_others_ends_when_none_of_them_moves(world: Builder) -> None:
    class Silent:
        """A pserver that gives up a MEET because nobody has pushed meanwhile."""

        def __init__(self, fake: FakePserver) -> None:
            self.fake = fake

        def __call__(self, message: Message, peer: Peer) -> Message | Later:
            if message.header.method == Method.MEET and message.header.meet.awaited:
                raise DeadlineError("trainer 0 waited for trainer 1 (running) on clock 'trained'")
            return self.fake(message, peer)

    made = world(trainers=2, every=2)
    made.start()
    made.servers[0].handler = Silent(made.fakes[0])

    with pytest.raises(DeadlineError, match="trainer 1"):
        made.trainers[0].stop(timeout_s=0.01)


def test_stop_is_idempotent_and_nothing_is_legal_after_it(world: Builder) -> None:
    made = world()
    made.start()
    (trainer,) = made.trainers

    assert trainer.stop(LONG_S) is trainer.stop(LONG_S)
    with pytest.raises(InternalError, match="stopped"):
        trainer.finish({})


def test_geo_requires_the_parameters_that_the_trainer_trains_itself() -> None:
    client = Client(ENDPOINTS[0], 0, 1, InprocServer(FakePserver(1)), pb.Hello())

    with pytest.raises(ConfigError, match="no parameters of its own"):
        make(specs.Geo(), plan_of(ENDPOINTS[:1]), [client], call_timeout_s=1.0)
    client.close()


def test_tables_the_trainer_does_not_hold_are_refused() -> None:
    client, own = Client(ENDPOINTS[0], 0, 1, InprocServer(FakePserver(1)), pb.Hello()), OwnByHand()
    own.tables = dict[str, GeoTable]()

    with pytest.raises(ConfigError, match=r"holds tables \[\], but the plan has \['emb'\]"):
        make(specs.Geo(), plan_of(ENDPOINTS[:1]), [client], call_timeout_s=1.0, own=own)
    client.close()


def test_a_gradient_of_what_the_executor_updates_is_refused(world: Builder) -> None:
    made = world()
    made.start()

    with pytest.raises(InternalError, match="b got a gradient"):
        made.trainers[0].inner.finish({"b": np.ones(3, np.float32)})
