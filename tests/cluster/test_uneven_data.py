"""Trainers with different amounts of data: nobody hangs, and averages count only who has data."""

from __future__ import annotations

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.core.specs import Async, CommunicationMode, Geo, HalfAsync, Ssp, Sync
from psrt.graph.program import Program
from psrt.partition.plan import build_plan
from tests.support.cluster import TIMEOUT_S, Feed, connect, in_threads, services, train


def line(rate: float = 0.5) -> tuple[Program, str]:
    """y = x · w: the gradient of w is known by heart."""
    with psrt.program() as program:
        x = layers.data("x", shape=(1,), dtype="float32")
        y = layers.data("y", shape=(1,), dtype="float32")
        zero = psrt.Param(name="w", initializer=psrt.initializer.Constant(0.0))
        loss = layers.mean(layers.square_error_cost(layers.fc(x, 1, param=zero, bias=False), y))
        psrt.optimizer.Sgd(learning_rate=rate).minimize(loss)
    return program, loss.name


def batch(y: float) -> Feed:
    return {"x": np.ones((4, 1), np.float32), "y": np.full((4, 1), y, np.float32)}


EVERY_MODE = pytest.mark.parametrize(
    "mode",
    [Sync(), Async(), Async(thread_pool_size=2), HalfAsync(), Ssp(0), Ssp(2), Geo(2)],
    ids=["sync", "async", "async-pool", "half-async", "ssp-in-step", "ssp", "geo"],
)


@EVERY_MODE
@pytest.mark.parametrize("pservers", [1, 2])
def test_a_trainer_with_less_data_does_not_hold_up_the_others(
    mode: CommunicationMode, pservers: int
) -> None:
    program, loss = line(rate=0.01)

    outcome = train(program, loss, [[batch(1.0)] * 3, [batch(1.0)] * 9], pservers, mode)

    assert [len(losses) for losses in outcome.losses] == [3, 9]


@EVERY_MODE
def test_epochs_of_very_different_length_end_for_everybody(mode: CommunicationMode) -> None:
    program, loss = line(rate=0.01)
    lengths = [1, 2, 17, 5]

    outcome = train(program, loss, [[batch(1.0)] * length for length in lengths], 2, mode)

    assert [len(losses) for losses in outcome.losses] == lengths
    assert abs(outcome.dense["w"].item() - 1.0) < 1.0  # all of them moved towards y = x


def test_after_the_shorter_epoch_the_other_trainer_trains_alone() -> None:
    program, loss = line(rate=0.25)

    outcome = train(program, loss, [[batch(4.0)], [batch(0.0), batch(0.0)]], pservers=1)

    # d/dw (w − y)² = 2 (w − y). Round 0: mean of −8 and 0 → w = 1. Round 1: 2 → w = 0.5.
    assert outcome.dense["w"].item() == pytest.approx(0.5)


def test_an_empty_push_keeps_a_round_going_without_entering_the_average() -> None:
    program, _ = line(rate=0.25)
    plan = build_plan(program.parameters.values(), ["pserver-0:1"])
    with services(1) as servers:
        idle, busy = (connect(servers, plan, Sync(), 2, trainer)[0] for trainer in range(2))
        for communicator in (idle, busy):
            communicator.start(TIMEOUT_S)

        gradient = np.array([[-8.0]], np.float32)
        in_threads(
            [lambda: idle.finish({}) and None, lambda: busy.finish({"w": gradient}) and None]
        )

        in_threads([lambda: idle.stop(TIMEOUT_S) and None])
        dense = busy.stop(TIMEOUT_S)
    assert dense["w"].item() == pytest.approx(2.0)
