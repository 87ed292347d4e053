"""HalfAsync: one call a step, own work always included, no waiting for other trainers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from psrt.communicator.base import Communicator
from psrt.core.tensors import SelectedRows
from psrt.rpc.methods import Method
from tests.support.communicators import (
    HALF_ASYNC,
    IDS,
    LONG_S,
    RATE,
    SYNC,
    Builder,
    ModeUnderTest,
    gradients,
    initial,
    initial_rows,
)
from tests.support.inproc import Fault


@pytest.fixture(params=["fake", "pserver"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Builder]:
    builder = Builder(request.param)
    yield builder
    builder.close()


def random_steps(count: int) -> Iterator[dict[str, np.ndarray | SelectedRows]]:
    random = np.random.default_rng(11)
    for _ in range(count):
        some = np.sort(random.choice(len(IDS), 3, replace=False))
        yield {
            "b": random.normal(size=3).astype(np.float32),
            "w": random.normal(size=(4, 2)).astype(np.float32),
            "emb": SelectedRows(IDS[some], random.normal(size=(3, 3)).astype(np.float32), 0, True),
        }


def trajectory(trainer: Communicator) -> list[np.ndarray]:
    """Everything a trainer sees over some steps."""
    seen = list(trainer.start(LONG_S).values())
    for made in random_steps(20):
        trainer.begin({"emb": IDS})
        pulled = trainer.finish(made)
        seen += [*(pulled.dense[name].copy() for name in ("b", "w")), pulled.rows["emb"]]
    return [*(values.copy() for values in seen), *trainer.stop(LONG_S).values()]


def test_a_single_trainer_gets_the_bits_of_sync(cluster: Builder) -> None:
    half, sync = (trajectory(cluster(mode).trainer) for mode in (HALF_ASYNC, SYNC))

    for ours, theirs in zip(half, sync, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_pulled_parameters_contain_the_gradients_of_the_step(cluster: Builder) -> None:
    trainer = cluster(HALF_ASYNC).trainer
    trainer.start(LONG_S)

    trainer.begin({"emb": IDS})
    pulled = trainer.finish(gradients())

    sent = gradients()
    np.testing.assert_allclose(pulled.dense["w"], initial("w") - RATE * sent["w"], rtol=1e-6)
    expected = initial_rows(IDS) - RATE * sent["emb"].values
    np.testing.assert_allclose(pulled.rows["emb"], expected, rtol=1e-6)


def test_a_step_is_one_call_to_each_pserver(cluster: Builder) -> None:
    world = cluster(HALF_ASYNC)
    world.trainer.start(LONG_S)
    before = world.calls.copy()

    for _ in range(3):
        world.trainer.begin({"emb": IDS})
        world.trainer.finish(gradients())

    assert world.calls - before == {Method.PUSH: 3 * 2}
    assert world.trainer.counters.snapshot()["steps_sent"] == 3


def test_a_trainer_does_not_wait_for_one_that_has_not_begun(cluster: Builder) -> None:
    world = cluster(HALF_ASYNC, trainers=2)
    world.trainer.start(LONG_S)

    for _ in range(5):
        pulled = world.trainer.finish(gradients())

    expected = initial("b") - RATE * 5 * gradients()["b"]
    np.testing.assert_allclose(pulled.dense["b"], expected, rtol=1e-6)


@pytest.mark.parametrize("mode", [HALF_ASYNC, SYNC], ids=["half-async", "sync"])
def test_a_step_whose_answer_was_lost_is_applied_once_and_still_brings_parameters(
    cluster: Builder, mode: ModeUnderTest
) -> None:
    world = cluster(mode)
    world.trainer.start(LONG_S)
    world.fault(Fault.RESET_AFTER, mode.carrier, times=2)

    pulled = world.trainer.finish(gradients())

    np.testing.assert_allclose(pulled.dense["w"], initial("w") - RATE * gradients()["w"], rtol=1e-6)
