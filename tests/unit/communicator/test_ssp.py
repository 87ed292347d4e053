"""Ssp: the limit on how far ahead a trainer may run, tested with fakes that record meetings."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest

from psrt.communicator.base import Communicator, Pulled
from psrt.core import specs
from psrt.core.errors import DeadlineError, UnavailableError
from psrt.kernels import jit
from psrt.rpc.methods import Method
from tests.support.carriers import eventually
from tests.support.communicators import (
    IDS,
    LONG_S,
    RATE,
    Builder,
    Cluster,
    ModeUnderTest,
    gradients,
    initial,
)


@pytest.fixture(autouse=True, scope="module")
def kernels_are_compiled() -> None:
    """A test with a short deadline must not wait for a compiler."""
    jit.warm_up()


def ssp(steps_ahead: int) -> ModeUnderTest:
    return ModeUnderTest(specs.Ssp(steps_ahead))


def started(world: Cluster) -> list[Communicator]:
    world.on_all(lambda trainer: trainer.start(LONG_S))
    return world.trainers


def step(trainer: Communicator, scale: float = 1.0) -> Pulled:
    trainer.begin({"emb": IDS})
    return trainer.finish(gradients(scale))


def await_gate(world: Cluster, trainer: int) -> None:
    """Until the trainer waits for the others at the first pserver."""
    clock = world.pservers[0]
    waiting = lambda: any(m.trainer == trainer for m in clock._meetings)  # noqa: E731
    eventually(waiting, f"trainer {trainer} at the gate", LONG_S)


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_a_trainer_runs_the_agreed_number_of_steps_ahead_and_then_waits(
    fakes: Builder, ahead: int
) -> None:
    world = fakes(ssp(ahead), trainers=2)
    fast, slow = started(world)

    with ThreadPoolExecutor(1) as pool:
        for _ in range(ahead):
            step(fast)  # step i returns when step i + 1 may be computed
        blocked = pool.submit(step, fast)
        await_gate(world, trainer=0)
        assert not blocked.done()
        slow.begin({})
        with ThreadPoolExecutor(1) as other:
            finishing = other.submit(slow.finish, gradients())
            blocked.result(LONG_S)
            finishing.result(LONG_S)


def test_parameters_contain_the_steps_that_were_waited_for(fakes: Builder) -> None:
    world = fakes(ssp(1), trainers=2)
    fast, slow = started(world)
    step(fast, scale=0)

    with ThreadPoolExecutor(1) as pool:
        blocked = pool.submit(step, fast, 0)
        await_gate(world, trainer=0)
        step(slow, scale=4)
        pulled = blocked.result(LONG_S)

    expected = initial("w") - RATE * 4 * gradients()["w"]
    np.testing.assert_allclose(pulled.dense["w"], expected, rtol=1e-6)


def test_the_clock_counts_steps_that_every_pserver_has_answered(fakes: Builder) -> None:
    world = fakes(ssp(3))
    (trainer,) = started(world)

    for _ in range(4):
        step(trainer)
    trainer.flush(LONG_S)

    assert world.pservers[0].clocks == {"step": {0: 4}}
    assert world.pservers[1].clocks == {}
    assert [pserver.steps for pserver in world.pservers] == [4, 4]


def test_nobody_waits_for_a_trainer_that_has_completed(fakes: Builder) -> None:
    world = fakes(ssp(0), trainers=2)
    staying, leaving = started(world)
    world.on_all(step)
    leaving.stop(LONG_S)

    for _ in range(5):
        step(staying)
    staying.flush(LONG_S)

    assert staying.counters.snapshot()["steps_sent"] == 6


def test_nobody_waits_for_a_trainer_that_pushes_nothing_more(fakes: Builder) -> None:
    world = fakes(ssp(0), trainers=2)
    training, testing = started(world)
    testing.flush(LONG_S, final=True)

    for _ in range(5):
        step(training)
    training.flush(LONG_S)

    dense = testing.flush(LONG_S, final=True)
    np.testing.assert_allclose(dense["b"], initial("b") - RATE * 5 * gradients()["b"], rtol=1e-5)


def test_completing_lets_a_trainer_through_that_already_waits(fakes: Builder) -> None:
    world = fakes(ssp(0), trainers=2)
    fast, slow = started(world)

    with ThreadPoolExecutor(1) as pool:
        blocked = pool.submit(step, fast)
        await_gate(world, trainer=0)
        slow.stop(LONG_S)

        blocked.result(LONG_S)


def test_a_wait_that_is_too_long_names_the_clock_and_the_missing_trainer(pservers: Builder) -> None:
    world = pservers(ssp(0), trainers=2, call_timeout_s=2.0)
    fast, _ = started(world)

    with pytest.raises(DeadlineError, match=r"clock 'step' for trainer 1 .* to reach 1"):
        step(fast)


def test_a_push_that_fails_ends_the_wait_at_the_gate(fakes: Builder) -> None:
    world = fakes(ssp(0), trainers=2)
    fast, _ = started(world)
    world.servers[1].stop()

    with pytest.raises(UnavailableError, match="ps1:6170"):
        step(fast)


def test_a_process_that_replaces_another_continues_where_that_was(pservers: Builder) -> None:
    world = pservers(ssp(0), trainers=2)
    started(world)
    for _ in range(5):
        world.on_all(step)
    staying = world.trainers[0]

    with closing(world.replace(1)) as replacement:
        world.trainers[1] = replacement
        replacement.start(LONG_S)
        for _ in range(3):
            world.on_all(step)
        world.on_all(lambda trainer: trainer.flush(LONG_S))
        (clock,) = world.pservers[0].status()["clocks"]

    assert clock["reached"] == [8, 8]
    assert staying.counters.snapshot()["steps_sent"] == 8


def test_a_gate_known_to_be_open_is_not_asked_again(fakes: Builder) -> None:
    world = fakes(ssp(1), trainers=2)
    late, early = started(world)
    for _ in range(1):
        step(early)
    step(late)
    early.stop(LONG_S)

    step(late)
    late.flush(LONG_S)
    asked = world.calls[Method.MEET]
    for _ in range(3):
        step(late)
    late.flush(LONG_S)

    assert world.calls[Method.MEET] == asked + 3  # each reports one own step


def test_the_time_spent_at_the_gate_is_counted(fakes: Builder) -> None:
    world = fakes(ssp(0), trainers=2)
    started(world)

    world.on_all(step)

    counted = world.trainers[0].counters.snapshot()
    assert counted["gate_s_events"] == 1
    assert counted["rows_late_s_events"] == 1
