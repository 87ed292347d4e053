"""Async: dense parameters come with the answer of a push or in a call of their own."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from psrt.communicator.async_ import async_
from psrt.communicator.async_.async_ import DueDense
from psrt.communicator.async_.merge_queue import MergeQueue
from psrt.core import specs
from psrt.rpc.methods import Method
from psrt.rpc.wire.frames import Message
from tests.support.carriers import eventually
from tests.support.communicators import (
    LONG_S,
    RATE,
    Builder,
    Cluster,
    ModeUnderTest,
    gradients,
    initial,
)

PUSHES = {1, 2}
"""Kinds of parts that bring gradients."""


# --- when they are due ----------------------------------------------------------------------------


def test_the_push_that_completes_the_steps_carries_the_pull() -> None:
    due = DueDense(enough=3)

    carried = []
    for steps in (1, 0, 1, 1, 1):
        carried.append(due.begin_with(steps))
        due.ended() if carried[-1] else due.sent(steps)

    assert carried == [False, False, False, True, False]


def test_one_pull_is_under_way_at_most_and_its_steps_are_not_forgotten() -> None:
    due = DueDense(enough=1)

    first = due.begin_with(1)
    second = due.begin_with(1)
    due.sent(1)
    due.ended()

    assert (first, second) == (True, False)
    assert due.begin_with(0)  # for the step that was sent meanwhile


def test_the_receiver_is_woken_by_steps_that_brought_nothing_back() -> None:
    due = DueDense(enough=2)
    with ThreadPoolExecutor(1) as pool:
        receiving = pool.submit(due.wait)
        due.sent(1)
        due.sent(1)
        assert receiving.result(LONG_S)

        receiving = pool.submit(due.wait)
        due.close()
        assert not receiving.result(LONG_S)


# --- what is late ---------------------------------------------------------------------------------


def test_gradients_are_late_when_they_wait_for_the_sender_and_not_it_for_them() -> None:
    queue = MergeQueue(capacity=2, max_merge=1, linger_s=0.0)
    gradient = {"w": np.ones(1, np.float32)}
    queue.put(gradient, {}, LONG_S)

    late = queue.take()
    with ThreadPoolExecutor(1) as pool:
        taking = pool.submit(queue.take)
        waits = lambda: bool(queue._changed._waiters)  # type: ignore[attr-defined]  # noqa: E731
        eventually(waits, "the sender waits for work", LONG_S)
        queue.put(gradient, {}, LONG_S)
        in_time = taking.result(LONG_S)

    assert late is not None
    assert in_time is not None
    assert (late.is_late, in_time.is_late) == (True, False)


# --- at pservers ----------------------------------------------------------------------------------


def recorded(cluster: Cluster) -> list[set[int]]:
    """The kinds of parts of each push that comes in."""
    seen: list[set[int]] = []
    cluster.before[Method.PUSH] = lambda message: seen.append(
        {part.kind for part in message.header.parts}
    )
    return seen


def test_the_answer_of_a_push_holds_parameters_with_its_gradients(fakes: Builder) -> None:
    world = fakes(ModeUnderTest(specs.Async(independent_recv_thread=False, send_wait_times=0)))
    trainer = world.trainer
    trainer.start(LONG_S)
    pushes, before = recorded(world), world.calls[Method.PULL]

    trainer.finish(gradients())
    pulled = lambda: trainer.counters.snapshot()["dense_pulls"] == 2  # noqa: E731
    eventually(pulled, "the answer of the push", LONG_S)
    dense = trainer.finish({}).dense

    np.testing.assert_allclose(dense["w"], initial("w") - RATE * gradients()["w"], rtol=1e-6)
    assert world.calls[Method.PULL] == before
    assert pushes[0] - PUSHES  # they were asked for
    trainer.stop(LONG_S)


def test_large_ones_are_pulled_apart_from_pushes_that_wait_for_each_other(
    fakes: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(async_, "LARGE_BYTES", 1)
    world = fakes(ModeUnderTest(specs.Async(send_queue_size=4, send_wait_times=0)))
    trainer = world.trainer
    trainer.start(LONG_S)
    opened, seen = threading.Event(), list[set[int]]()

    def hold(message: Message) -> None:
        seen.append({part.kind for part in message.header.parts})
        assert opened.wait(LONG_S)

    world.before[Method.PUSH] = hold
    trainer.finish(gradients())
    eventually(lambda: len(seen) == 2, "a push at both pservers", LONG_S)
    before = world.calls[Method.PULL]
    for _ in range(3):
        trainer.finish(gradients())
    opened.set()
    trainer.flush(LONG_S)

    assert all(kinds <= PUSHES for kinds in seen[2:])
    eventually(lambda: world.calls[Method.PULL] > before, "a pull of their own", LONG_S)
    trainer.stop(LONG_S)
