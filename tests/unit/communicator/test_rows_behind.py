"""Rows that come with the answer of a push: exactly those behind its step, in one call."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from psrt.communicator.base import ComingRows, Communicator
from psrt.core import specs
from psrt.core.errors import JobError, PsrtError
from psrt.core.tensors import SelectedRows
from psrt.rpc.methods import Method
from psrt.rpc.wire.frames import Message
from tests.support.carriers import eventually
from tests.support.communicators import (
    IDS,
    LONG_S,
    RATE,
    Builder,
    ModeUnderTest,
    gradients,
    initial_rows,
)
from tests.support.inproc import Fault

MANY_IDS = np.arange(100, 200)
"""So many that pservers remember the list."""

ASYNC = ModeUnderTest(specs.Async())


@pytest.fixture(params=["fake", "pserver", "buckets"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Builder]:
    builder = Builder(request.param)
    yield builder
    builder.close()


def asked(trainer: Communicator, ids: np.ndarray = IDS) -> ComingRows:
    """Ask behind the running step, once the push before it has been answered."""
    idle = lambda: trainer.backlog().steps == 0  # noqa: E731
    eventually(idle, "the answer of the push before", LONG_S)
    coming = trainer.read_behind({"emb": ids})
    assert coming is not None
    return coming


def after(steps: int) -> np.ndarray:
    return initial_rows(IDS) - RATE * steps * gradients()["emb"].values  # type: ignore[union-attr]


def test_rows_are_read_behind_the_gradients_of_the_step_without_a_further_call(
    cluster: Builder,
) -> None:
    world = cluster(ASYNC)
    trainer = world.trainer
    trainer.start(LONG_S)
    pulls = world.calls[Method.PULL]

    for step in range(1, 4):
        coming = asked(trainer)
        trainer.finish(gradients())
        rows = coming.wait()["emb"]
        np.testing.assert_allclose(rows, after(step), rtol=1e-5)
        assert rows.flags.writeable

    assert world.calls[Method.PULL] == pulls


def test_a_step_without_gradients_brings_rows_too(cluster: Builder) -> None:
    trainer = cluster(ASYNC).trainer
    trainer.start(LONG_S)

    coming = asked(trainer)
    trainer.finish({})

    np.testing.assert_array_equal(coming.wait()["emb"], initial_rows(IDS))


@pytest.mark.parametrize("fault", [Fault.RESET_BEFORE, Fault.RESET_AFTER, Fault.DUPLICATE])
def test_a_repeated_push_counts_once_and_brings_rows(cluster: Builder, fault: Fault) -> None:
    world = cluster(ASYNC)
    world.trainer.start(LONG_S)
    world.fault(fault, Method.PUSH)

    coming = asked(world.trainer)
    world.trainer.finish(gradients())

    np.testing.assert_allclose(coming.wait()["emb"], after(1), rtol=1e-6)


def test_a_list_that_came_with_a_push_is_known_in_a_later_one(pservers: Builder) -> None:
    world = pservers(ASYNC)
    trainer = world.trainer
    trainer.start(LONG_S)
    coming = asked(trainer, MANY_IDS)
    trainer.finish(gradients())
    rows = coming.wait()["emb"]

    values = np.ones((len(MANY_IDS), 3), np.float32)
    again = asked(trainer, MANY_IDS)
    trainer.finish({"emb": SelectedRows(MANY_IDS, values, unique=True)})

    np.testing.assert_allclose(again.wait()["emb"], rows - RATE, rtol=1e-5)
    assert trainer.counters.snapshot()["unsaid_bytes"] == MANY_IDS.nbytes


def test_a_list_that_a_pserver_has_forgotten_is_sent_with_the_pulls(pservers: Builder) -> None:
    world = pservers(ASYNC)
    trainer = world.trainer
    trainer.start(LONG_S)
    asked(trainer, MANY_IDS)
    trainer.finish(gradients())
    coming = asked(trainer, MANY_IDS)
    for pserver in world.pservers:
        pserver._id_lists.release(0)  # type: ignore[union-attr]

    values = np.ones((len(MANY_IDS), 3), np.float32)
    trainer.finish({"emb": SelectedRows(MANY_IDS, values, unique=True)})

    expected = initial_rows(MANY_IDS) - RATE
    np.testing.assert_allclose(coming.wait()["emb"], expected, rtol=1e-5)
    assert trainer.counters.snapshot()["id_lists_missed"] == 2


def test_nothing_is_asked_for_behind_a_push_that_waits_for_another(fakes: Builder) -> None:
    world = fakes(ASYNC)
    trainer, gate = world.trainer, threading.Event()
    trainer.start(LONG_S)
    world.fault(Fault.DELAY, Method.PUSH, gate=gate)

    trainer.finish(gradients())
    late = trainer.read_behind({"emb": IDS})
    gate.set()

    assert late is None
    coming = asked(trainer)
    trainer.finish(gradients())
    np.testing.assert_allclose(coming.wait()["emb"], after(2), rtol=1e-5)


@pytest.mark.parametrize(
    "mode",
    [
        specs.Async(max_merge_var_num=2, send_queue_size=2),
        specs.Async(thread_pool_size=2, send_queue_size=2),
        specs.Ssp(),
        specs.HalfAsync(),
        specs.Sync(),
    ],
    ids=str,
)
def test_nothing_is_asked_for_where_pushes_wait_overtake_each_other_or_bring_all(
    fakes: Builder, mode
) -> None:
    trainer = fakes(ModeUnderTest(mode)).trainer
    trainer.start(LONG_S)

    assert trainer.read_behind({"emb": IDS}) is None


def test_the_error_of_the_push_ends_the_wait_for_its_rows(fakes: Builder) -> None:
    world = fakes(ASYNC)
    world.trainer.start(LONG_S)

    def refuse(message: Message) -> None:
        raise JobError("the job is over")

    world.before[Method.PUSH] = refuse
    coming = asked(world.trainer)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(coming.wait)
        world.trainer.finish(gradients())
        with pytest.raises(PsrtError, match="the job is over"):
            waiting.result(LONG_S)
