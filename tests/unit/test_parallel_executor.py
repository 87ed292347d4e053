"""The parallel executor gives what one executor with the whole batch gives, however it is cut."""

from __future__ import annotations

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.executor.parallel import ParallelExecutor
from psrt.executor.strategies import BuildStrategy, ExecutionStrategy, ReduceStrategy

ALL = ("forward", "backward", "optimize")


def classifier() -> tuple[psrt.Program, str]:
    """Sparse and dense tables, ragged slots, two dense layers."""
    with psrt.program(seed=3) as program:
        x = layers.data("x", shape=(5,))
        ids = layers.data("ids", dtype="int64", ragged=True)
        word = layers.data("word", shape=(2,), dtype="int64")
        label = layers.data("label", shape=(1,))
        pooled = layers.sequence_pool(layers.embedding(ids, (40, 3), is_sparse=True), "average")
        words = layers.flatten(layers.embedding(word, (11, 4)))
        hidden = layers.fc(layers.concat([x, pooled, words]), 7, act="relu")
        logit = layers.fc(hidden, 1)
        loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, label))
        psrt.optimizer.Adagrad(0.1).minimize(loss)
    return program, loss.name


def batches(count: int, examples: int) -> list[dict[str, object]]:
    rng = np.random.default_rng(5)
    return [
        {
            "x": rng.standard_normal((examples, 5)).astype(np.float32),
            "ids": psrt.Ragged.of(
                [list(rng.integers(0, 40, rng.integers(0, 4))) for _ in range(examples)]
            ),
            "word": rng.integers(0, 11, (examples, 2)),
            "label": rng.integers(0, 2, (examples, 1)).astype(np.float32),
        }
        for _ in range(count)
    ]


def trained_alone(dtype: str, feeds) -> psrt.Scope:
    program, _ = classifier()
    scope = psrt.Scope()
    scope.init_parameters(program, dtype)
    executor = psrt.Executor(program, scope, dtype=dtype)
    for feed in feeds:
        executor.run(feed, roles=ALL)
    return scope


def trained_by_replicas(
    dtype: str, feeds, replicas: int, build: BuildStrategy, how: ExecutionStrategy | None = None
) -> psrt.Scope:
    program, _ = classifier()
    scope = psrt.Scope()
    scope.init_parameters(program, dtype)
    with ParallelExecutor(program, scope, replicas, build, how, dtype=dtype) as executor:
        for feed in feeds:
            executor.run(feed, roles=ALL)
    return scope


@pytest.mark.parametrize("strategy", list(ReduceStrategy))
@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("examples", [1, 2, 7, 12])
def test_replicas_train_as_one_executor_does(strategy, replicas, examples):
    feeds = batches(4, examples)

    scope = trained_by_replicas("float64", feeds, replicas, BuildStrategy(reduce_strategy=strategy))

    expected = trained_alone("float64", feeds)
    for name in expected:
        np.testing.assert_allclose(scope[name], expected[name], rtol=1e-6, atol=1e-12, err_msg=name)
