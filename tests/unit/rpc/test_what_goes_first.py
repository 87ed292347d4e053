"""Pulls for the next forward pass do not queue behind pushes: a push that hangs delays no pull."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

from psrt.core import specs
from psrt.rpc.methods import Method
from psrt.rpc.wire.frames import Message
from tests.support.carriers import eventually
from tests.support.communicators import (
    GEO,
    IDS,
    LONG_S,
    Builder,
    Cluster,
    ModeUnderTest,
    gradients,
    initial_rows,
)

STEPS = 3
ROOMY = ModeUnderTest(
    specs.Async(send_queue_size=8, send_wait_times=0, min_send_grad_num_before_recv=1)
)


@pytest.fixture
def build() -> Iterator[Builder]:
    builder = Builder("real")
    yield builder
    builder.close()


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    opened = threading.Event()
    yield opened
    opened.set()


def holding_pushes(cluster: Cluster, gate: threading.Event) -> list[Message]:
    """The pushes that have come in; pservers look at them when `gate` opens."""
    held: list[Message] = []

    def hold(message: Message) -> None:
        held.append(message)
        assert gate.wait(LONG_S)

    cluster.before[Method.PUSH] = hold
    return held


def test_rows_of_the_next_steps_arrive_while_a_push_hangs(
    build: Builder, gate: threading.Event
) -> None:
    cluster = build(ROOMY)
    trainer = cluster.trainer
    trainer.start(LONG_S)
    held = holding_pushes(cluster, gate)

    for _ in range(STEPS):
        trainer.begin({"emb": IDS})
        rows = trainer.finish(gradients()).rows["emb"]
        np.testing.assert_array_equal(rows, initial_rows(IDS))
    eventually(lambda: bool(held), "a push under way")

    assert not gate.is_set()
    gate.set()
    trainer.flush(LONG_S)
    assert trainer.counters.snapshot()["steps_sent"] == STEPS


def test_geo_trains_on_while_an_exchange_hangs(build: Builder, gate: threading.Event) -> None:
    cluster = build(GEO)
    trainer = cluster.trainer
    trainer.start(LONG_S)
    held = holding_pushes(cluster, gate)

    for _ in range(STEPS):  # an exchange begins after the second
        trainer.begin({"emb": IDS})
        assert len(trainer.finish(gradients()).rows["emb"]) == len(IDS)
    eventually(lambda: bool(held), "an exchange under way")

    gate.set()
    trainer.flush(LONG_S)
    assert trainer.counters.snapshot()["steps_sent"] >= STEPS
