"""Whole sparse tables are looked up where they stand; the numbers are those of fetched rows."""

from __future__ import annotations

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.core.errors import ProgramError
from psrt.executor import RowBatch, distinct_ids, lookups_by_table
from psrt.executor.parallel.parallel import ParallelExecutor
from psrt.executor.strategies import BuildStrategy, ReduceStrategy

ALL = ("forward", "backward", "optimize")
HEIGHT, WIDTH = 30, 3


def program_of(
    pool: str = "sum", padding: int | None = None, decay=None
) -> tuple[psrt.Program, str]:
    """One sparse table that a pooled and an ordinary lookup share."""
    table = {"is_sparse": True, "param": "t", "padding_idx": padding}
    with psrt.program(seed=2) as program:
        slots = [layers.data("a", dtype="int64", ragged=True), layers.data("b", (1,), "int64")]
        word = layers.data("word", (2,), "int64")
        pooled = layers.slot_embeddings(slots, (HEIGHT, WIDTH), pool, is_distributed=False, **table)
        words = layers.flatten(layers.embedding(word, (HEIGHT, WIDTH), **table))
        loss = layers.mean(layers.square(layers.fc(layers.concat([pooled, words]), 1)))
        psrt.optimizer.Adagrad(0.1, regularization=decay).minimize(loss)
    return program, loss.name


def batches(count: int = 3, examples: int = 7) -> list[dict[str, object]]:
    rng = np.random.default_rng(4)
    return [
        {
            "a": psrt.Ragged.of(
                [list(rng.integers(0, HEIGHT, rng.integers(0, 4))) for _ in range(examples)]
            ),
            "b": rng.integers(0, HEIGHT, (examples, 1)),
            "word": rng.integers(0, HEIGHT, (examples, 2)),
        }
        for _ in range(count)
    ]


def started(program: psrt.Program, dtype: str = "float32") -> psrt.Scope:
    scope = psrt.Scope()
    scope.init_parameters(program, dtype)
    return scope


def fetched_rows(program: psrt.Program, scope: psrt.Scope, feed) -> dict[str, RowBatch]:
    """Rows as a trainer binds them: each row once, as a copy."""
    bound = {}
    for table, names in lookups_by_table(program).items():
        ids, index = distinct_ids(feed, names)
        bound[table] = RowBatch(ids, scope[table][ids], index)
    return bound


def assert_same_bits(one: psrt.Scope, other: psrt.Scope) -> None:
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@pytest.mark.parametrize("strategy", list(ReduceStrategy))
@pytest.mark.parametrize("barrier", [True, False])
@pytest.mark.parametrize("replicas", [1, 2, 9])
def test_training_gives_the_bits_of_fetched_rows(strategy, barrier, replicas):
    program, _ = program_of()
    build = BuildStrategy(
        reduce_strategy=strategy, enable_backward_optimizer_op_deps=barrier, memory_optimize=True
    )
    in_place, fetching = started(program), started(program)

    with ParallelExecutor(program, in_place, replicas, build) as executor:
        for feed in batches():
            executor.run(feed, roles=ALL)

    with ParallelExecutor(program, fetching, replicas, build) as executor:
        for feed in batches():
            executor.run(feed, rows=fetched_rows(program, fetching, feed), roles=ALL)
    assert_same_bits(in_place, fetching)


@pytest.mark.parametrize(("pool", "padding"), [("sum", None), ("sum", 4), ("max", None)])
def test_training_gives_the_numbers_of_one_executor(pool, padding):
    """Rows are fetched if one of them reads as zeros, or if a maximum is kept."""
    program, _ = program_of(pool, padding)
    scope, expected = started(program, "float64"), started(program, "float64")

    with ParallelExecutor(program, scope, 2, dtype="float64") as executor:
        for feed in batches():
            executor.run(feed, roles=ALL)

    alone = psrt.Executor(program, expected, dtype="float64")
    for feed in batches():
        alone.run(feed, roles=ALL)
    for name in expected:
        np.testing.assert_allclose(scope[name], expected[name], rtol=1e-6, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("decay", [psrt.regularizer.L1Decay(0.3), psrt.regularizer.L2Decay(0.5)])
@pytest.mark.parametrize("strategy", list(ReduceStrategy))
@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_the_rows_of_the_step_decay_and_no_others(decay, strategy, replicas):
    program, _ = program_of(decay=decay)
    scope, expected = started(program, "float64"), started(program, "float64")
    build = BuildStrategy(reduce_strategy=strategy)

    with ParallelExecutor(program, scope, replicas, build, dtype="float64") as executor:
        for feed in batches(examples=3):
            executor.run(feed, roles=ALL)

    alone = psrt.Executor(program, expected, dtype="float64")
    for feed in batches(examples=3):
        alone.run(feed, roles=ALL)
    for name in expected:
        np.testing.assert_allclose(scope[name], expected[name], rtol=1e-6, atol=1e-12, err_msg=name)


def test_gradients_are_handed_out_with_the_ids_of_the_whole_batch():
    program, _ = program_of()
    scope = started(program)
    (feed,) = batches(1)

    with ParallelExecutor(program, scope, 2) as executor:
        executor.run(feed)
        gradient = executor.gradients()["t"]

    alone = psrt.Executor(program, scope)
    alone.run(feed)
    expected = alone.gradients()["t"]
    order, expected_order = np.argsort(gradient.ids), np.argsort(expected.ids)
    np.testing.assert_array_equal(gradient.ids[order], expected.ids[expected_order])
    np.testing.assert_allclose(
        gradient.values[order], expected.values[expected_order], rtol=1e-5, atol=1e-7
    )


def test_bound_rows_and_the_table_may_take_turns():
    program, _ = program_of()
    turns, expected = started(program), started(program)

    with ParallelExecutor(program, turns, 2) as executor:
        for number, feed in enumerate(batches(4)):
            rows = fetched_rows(program, turns, feed) if number % 2 else None
            executor.run(feed, rows=rows, roles=ALL)

    with ParallelExecutor(program, expected, 2) as executor:
        for feed in batches(4):
            executor.run(feed, roles=ALL)
    assert_same_bits(turns, expected)


def test_a_table_that_was_replaced_between_runs_is_the_one_that_is_read():
    program, loss = program_of()
    scope = started(program)
    (feed,) = batches(1)

    with ParallelExecutor(program, scope, 2) as executor:
        executor.run(feed, [loss], roles=("forward",))
        scope["t"] = np.zeros((HEIGHT, WIDTH), np.float32)
        (found,) = executor.run(feed, [loss], roles=("forward",))

    bias = next(name for name in scope if name.endswith("b_0"))
    np.testing.assert_allclose(found, np.square(scope[bias][0]), atol=1e-12)


def test_a_table_of_another_dtype_is_fetched_and_cast():
    program, loss = program_of()
    scope = started(program)
    (feed,) = batches(1)

    with ParallelExecutor(program, scope, 2) as executor:
        (expected,) = executor.run(feed, [loss], roles=("forward",))
        scope["t"] = scope["t"].astype(np.float64)
        (found,) = executor.run(feed, [loss], roles=("forward",))

    np.testing.assert_array_equal(found, expected)


def test_an_id_outside_of_the_table_is_blamed_on_the_lookup():
    program, _ = program_of()
    (feed,) = batches(1)
    feed["word"][3, 1] = HEIGHT

    with (
        ParallelExecutor(program, started(program), 2) as executor,
        pytest.raises(ProgramError) as failed,
    ):
        executor.run(feed, roles=ALL)

    assert f"Id {HEIGHT} is not a row of table t, which has rows 0 to {HEIGHT - 1}" in str(
        failed.value
    )
    assert "The step failed in op embedding of layer embedding_0" in str(failed.value)
