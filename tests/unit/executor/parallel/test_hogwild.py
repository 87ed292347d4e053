"""Replicas that do not wait: numbers of batches, and what a run returns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import psrt
from psrt import ExecutionStrategy, ParallelExecutor, layers
from psrt.executor.parallel.hogwild import BatchSource
from psrt.executor.strategies import BuildStrategy

TRAIN = ("forward", "backward", "clip_and_decay", "optimize")
FEED = {"x": np.ones((2, 6), np.float32)}


def noisy() -> tuple[psrt.Program, Any]:
    """A network whose loss depends on the number of the step: it drops half of its inputs."""
    with psrt.program(seed=1) as program:
        dropped = layers.dropout(layers.data("x", (6,)), 0.5)
        loss = layers.mean(layers.fc(dropped, 1))
        psrt.optimizer.Sgd(0.1).minimize(loss)
    return program, loss


def ready(program: psrt.Program) -> psrt.Scope:
    scope = psrt.Scope()
    scope.init_parameters(program)
    return scope


def trained(calls: list[int]) -> Any:
    """The weights after so many batches in each call of `run_from`, by one replica."""
    program, _ = noisy()
    scope = ready(program)
    with ParallelExecutor(program, scope, 1, BuildStrategy(async_mode=True)) as executor:
        for batches in calls:
            executor.run_from([FEED] * batches, roles=TRAIN)
    return scope[next(iter(program.parameters))]


def test_steps_are_counted_over_all_calls() -> None:
    np.testing.assert_array_equal(trained([2, 0, 1]), trained([3]))
    assert not np.array_equal(trained([1, 1]), trained([1]))


@pytest.mark.parametrize("threads", [1, 2])
def test_the_values_are_those_of_the_last_batch(threads: int) -> None:
    with psrt.program() as program:
        total = layers.reduce_sum(layers.data("x", (1,)))
    build, how = BuildStrategy(async_mode=True), ExecutionStrategy(num_threads=threads)
    feeds = [{"x": np.full((1, 1), number, np.float32)} for number in range(7)]

    with ParallelExecutor(program, psrt.Scope(), 2, build, how) as executor:
        done = executor.run_from(feeds, [total], roles=("forward",))

    assert (done.batches, done.fetched) == (7, [6.0])


def test_a_source_that_fails_ends_with_the_batches_before_it() -> None:
    def failing() -> Any:
        yield FEED
        raise OSError("the disk is gone")

    source = BatchSource(failing(), 5)

    assert list(source) == [(5, FEED)]
    assert source.next_number == 6
    with pytest.raises(OSError, match="the disk is gone"):
        source.check()
