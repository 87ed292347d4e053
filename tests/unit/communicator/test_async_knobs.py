"""The settings of Async, tested against docs/explanation/semantics.md.

Pservers are fakes; SGD at rate 0.5 on the pushed gradients.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

from psrt.communicator.async_ import merge_queue
from psrt.communicator.base import Communicator
from psrt.core import specs
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
    initial_rows,
)


def asynchronous(**settings: object) -> ModeUnderTest:
    return ModeUnderTest(specs.Async(**settings))  # type: ignore[arg-type]


class Gate:
    """Holds back every call of a method until it is opened."""

    def __init__(self, cluster: Cluster, method: Method) -> None:
        self._cluster, self._method, self._open = cluster, method, threading.Event()
        cluster.before[method] = lambda message: self._wait()

    def arrived(self, calls: int) -> None:
        def are_there() -> bool:
            return self._cluster.calls[self._method] >= calls

        eventually(are_there, f"{calls} calls of {self._method.name}", LONG_S)

    def open(self) -> None:
        self._open.set()

    def _wait(self) -> None:
        assert self._open.wait(LONG_S)


def finish(trainer: Communicator, *scales: float) -> None:
    for scale in scales:
        trainer.finish(gradients(scale))


# --- merge ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("merge", "applied"), [("sum", 1 + 14), ("average", 1 + 14 / 3)])
def test_gradients_that_wait_together_are_summed_or_averaged(
    fakes: Builder, merge: str, applied: float
) -> None:
    world = fakes(
        asynchronous(max_merge_var_num=4, send_queue_size=4, send_wait_times=0, merge=merge)
    )
    world.trainer.start(LONG_S)
    gate = Gate(world, Method.PUSH)
    finish(world.trainer, 1)
    gate.arrived(2)  # at both pservers
    finish(world.trainer, 2, 4, 8)
    gate.open()

    dense = world.trainer.flush(LONG_S)
    rows = world.trainer.pull_rows({"emb": IDS})["emb"]

    expected = initial("w") - RATE * np.float32(applied) * gradients()["w"]
    np.testing.assert_allclose(dense["w"], expected, rtol=1e-5)
    moved = RATE * np.float32(applied) * gradients()["emb"].values
    np.testing.assert_allclose(rows, initial_rows(IDS) - moved, rtol=1e-5)
    assert [pserver.steps for pserver in world.pservers] == [4, 4]


# --- thread_pool_size -----------------------------------------------------------------------------


def test_as_many_pushes_are_under_way_as_there_are_threads(fakes: Builder) -> None:
    world = fakes(asynchronous(send_queue_size=4, thread_pool_size=3))
    world.trainer.start(LONG_S)
    together = threading.Barrier(3 * 2)  # three pushes at two pservers
    world.before[Method.PUSH] = lambda message: together.wait(LONG_S) and None

    finish(world.trainer, 1, 2, 4)
    dense = world.trainer.stop(LONG_S)

    np.testing.assert_allclose(dense["w"], initial("w") - RATE * 7 * gradients()["w"], rtol=1e-5)
    assert [pserver.steps for pserver in world.pservers] == [3, 3]


def test_one_thread_pushes_one_after_the_other(fakes: Builder) -> None:
    world = fakes(asynchronous(send_queue_size=4))
    world.trainer.start(LONG_S)
    gate = Gate(world, Method.PUSH)

    finish(world.trainer, 1, 2, 4)
    gate.arrived(2)
    under_way = world.calls[Method.PUSH]
    gate.open()
    world.trainer.stop(LONG_S)

    assert under_way == 2
    assert world.calls[Method.PUSH] == 6


# --- min_send_grad_num_before_recv, independent_recv_thread ---------------------------------------


def dense_pulls(trainer: Communicator) -> float:
    return trainer.counters.snapshot()["dense_pulls"]


def test_dense_parameters_are_pulled_once_enough_steps_were_sent(fakes: Builder) -> None:
    trainer = fakes(asynchronous(min_send_grad_num_before_recv=3)).trainer
    trainer.start(LONG_S)

    for _ in range(2):
        finish(trainer, 1)
        trainer.flush(LONG_S)
    before = dense_pulls(trainer)
    finish(trainer, 1)
    trainer.flush(LONG_S)

    assert before == 1  # the pull of start
    eventually(lambda: dense_pulls(trainer) == 2, "the pull after the third step", LONG_S)


def test_without_a_receiver_every_push_is_followed_by_a_pull(fakes: Builder) -> None:
    trainer = fakes(
        asynchronous(independent_recv_thread=False, min_send_grad_num_before_recv=100)
    ).trainer
    trainer.start(LONG_S)

    for _ in range(3):
        finish(trainer, 1)
        trainer.flush(LONG_S)

    assert dense_pulls(trainer) == 4


# --- gradients that leave early -------------------------------------------------------------------


def test_a_large_gradient_is_applied_before_its_step_has_ended(
    fakes: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge_queue, "EARLY_BYTES", 8 * 4 // 2)  # w at two pservers
    world = fakes(asynchronous())
    world.trainer.start(LONG_S)
    sent = gradients()

    world.trainer.offer("w", sent["w"])
    world.trainer.offer("b", sent["b"])
    eventually(
        lambda: [len(pserver.versions_pushed) for pserver in world.pservers] == [1, 1],
        "a block of w at each pserver",
        LONG_S,
    )
    steps_before_the_end = [pserver.steps for pserver in world.pservers]
    world.trainer.finish(sent)
    dense = world.trainer.flush(LONG_S)

    assert steps_before_the_end == [0, 0]
    assert [pserver.steps for pserver in world.pservers] == [1, 1]
    np.testing.assert_allclose(dense["w"], initial("w") - RATE * sent["w"], rtol=1e-6)
    np.testing.assert_allclose(dense["b"], initial("b") - RATE * sent["b"], rtol=1e-6)
    counted = world.trainer.counters.snapshot()
    assert (counted["pushes"], counted["pushes_early"], counted["steps_sent"]) == (2, 1, 1)
    assert counted["gradients_merged"] == 3


def test_an_early_push_goes_only_to_pservers_that_get_a_gradient(
    fakes: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge_queue, "EARLY_BYTES", 3 * 4 // 2)  # b, which ps1 holds, of two
    world = fakes(asynchronous())
    world.trainer.start(LONG_S)
    sent = gradients()
    received: list[int] = []
    world.before[Method.PUSH] = lambda message: received.append(message.header.step)

    world.trainer.offer("b", sent["b"])
    world.trainer.offer("w", sent["w"])
    eventually(lambda: world.pservers[1].versions_pushed, "b at its pserver", LONG_S)
    world.trainer.finish(sent)
    world.trainer.flush(LONG_S)

    assert received == [0, 1, 1]
