"""Sync training on any number of pservers and trainers equals one process with the big batch."""

from __future__ import annotations

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.graph.program import Program
from tests.support.cluster import Feed, Outcome, train

STEPS, BIG_BATCH, ROWS, WIDTH = 50, 24, 40, 4

OPTIMIZERS = {
    "sgd": lambda: psrt.optimizer.Sgd(learning_rate=0.1),
    "adagrad": lambda: psrt.optimizer.Adagrad(learning_rate=0.05),
    "adam": lambda: psrt.optimizer.Adam(learning_rate=0.01),
}


def model(optimizer: str) -> tuple[Program, str]:
    """A small click model: one sparse table, one dense embedding, two dense layers."""
    with psrt.program(seed=3) as program:
        ids = layers.data("ids", shape=(3,), dtype="int64")
        dense = layers.data("dense", shape=(5,), dtype="float32")
        click = layers.data("click", shape=(1,), dtype="float32")
        rows = layers.embedding(ids, (ROWS, WIDTH), is_sparse=True)
        layer = layers.concat([layers.reshape(rows, (-1, 3 * WIDTH)), dense], axis=1)
        layer = layers.fc(layer, 16, act="tanh")
        loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(layers.fc(layer, 1), click))
        OPTIMIZERS[optimizer]().minimize(loss)
    return program, loss.name


def big_batches() -> list[Feed]:
    rng = np.random.default_rng(11)
    return [
        {
            "ids": rng.integers(0, ROWS, (BIG_BATCH, 3)),
            "dense": rng.standard_normal((BIG_BATCH, 5), dtype=np.float32),
            "click": rng.integers(0, 2, (BIG_BATCH, 1)).astype(np.float32),
        }
        for _ in range(STEPS)
    ]


def shares(batches: list[Feed], trainers: int) -> list[list[Feed]]:
    """Equal parts of each big batch, one list of batches per trainer."""
    size = BIG_BATCH // trainers
    return [
        [{k: v[t * size : (t + 1) * size] for k, v in batch.items()} for batch in batches]
        for t in range(trainers)
    ]


def one_process(optimizer: str) -> Outcome:
    """The truth: the local executor with the big batch, optimizer included."""
    program, loss = model(optimizer)
    scope = psrt.Scope()
    scope.init_parameters(program)
    executor = psrt.Executor(program, scope)
    for batch in big_batches():
        executor.run(batch, [loss], roles=("forward", "backward", "optimize"))
    (table,) = [p.name for p in program.parameters.values() if p.sparse]
    dense = {name: scope[name] for name in program.parameters if name != table}
    return Outcome(dense, {table: dict(enumerate(scope[table]))})


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("pservers", [1, 2, 3])
@pytest.mark.parametrize("trainers", [1, 2, 4])
def test_fifty_rounds_give_the_parameters_of_one_process(
    optimizer: str, pservers: int, trainers: int
) -> None:
    truth = one_process(optimizer)

    program, loss = model(optimizer)
    outcome = train(program, loss, shares(big_batches(), trainers), pservers)

    assert outcome.dense.keys() == truth.dense.keys()
    for name, values in outcome.dense.items():
        assert np.abs(values - truth.dense[name]).max() <= 1e-5, name
    (rows,), (true_rows,) = outcome.rows.values(), truth.rows.values()
    assert len(rows) == ROWS
    for id_, row in rows.items():
        assert np.abs(row - true_rows[id_]).max() <= 1e-5, id_


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_number_of_pservers_does_not_change_a_single_bit(optimizer: str) -> None:
    program, loss = model(optimizer)

    first, *others = [
        train(program, loss, shares(big_batches(), 2), pservers) for pservers in (1, 2, 3)
    ]

    assert_same_bits(first, *others)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("pservers", [1, 2])
def test_blocks_that_are_updated_beside_each_other_do_not_change_a_single_bit(
    optimizer: str, pservers: int
) -> None:
    program, loss = model(optimizer)
    batches = shares(big_batches(), 2)

    whole = train(program, loss, batches, pservers)
    in_sections = train(program, loss, batches, pservers, max_block_size=32)

    assert_same_bits(whole, in_sections)


def assert_same_bits(first: Outcome, *others: Outcome) -> None:
    for other in others:
        for name, values in first.dense.items():
            assert values.tobytes() == other.dense[name].tobytes(), name
        for table, rows in first.rows.items():
            assert rows.keys() == other.rows[table].keys()
            for id_, row in rows.items():
                assert row.tobytes() == other.rows[table][id_].tobytes()
