"""Clusters that regularise on their pservers end where one process ends that does it itself.

Dense parameters and a table of which each trainer touches some rows only, under L1 and L2, in
rounds of any number of trainers; and by the pushes of one trainer.
"""

from __future__ import annotations

import numpy as np
import pytest

import psrt
from psrt import Program, layers, regularizer
from psrt.core.specs import HalfAsync
from tests.support.cluster import Feed, Outcome, train

STEPS, BIG_BATCH, ROWS, WIDTH = 20, 12, 60, 4

DECAYS = {"l1": regularizer.L1Decay(0.02), "l2": regularizer.L2Decay(0.1)}
OPTIMIZERS = {
    "sgd": psrt.optimizer.Sgd(0.1).spec,
    "adagrad": psrt.optimizer.Adagrad(0.05).spec,
    "adam_of_all_rows": psrt.optimizer.Adam(0.01, lazy_mode=False).spec,
}

every_decay = pytest.mark.parametrize("decay", DECAYS)


def model(decay: str, optimizer: str = "sgd") -> tuple[Program, str]:
    """An embedding of two ids with one padding id, and two dense layers, one of them on its own."""
    own = psrt.Param("out", regularizer=regularizer.L2Decay(0.3))
    with psrt.program(seed=3) as program:
        ids, y = layers.data("ids", (2,), "int64"), layers.data("y")
        rows = layers.embedding(ids, (ROWS, WIDTH), is_sparse=True, padding_idx=0, param="t")
        hidden = layers.fc(layers.reshape(rows, (-1, 2 * WIDTH)), 8, act="tanh")
        loss = layers.mean(layers.square_error_cost(layers.fc(hidden, 1, param=own), y))
        declared = psrt.optimizer.Declaration(
            OPTIMIZERS[optimizer], psrt.optimizer.ConstantRate(0.05), DECAYS[decay]
        )
        declared.minimize(loss)
    return program, loss.name


def big_batches() -> list[Feed]:
    rng = np.random.default_rng(11)
    return [
        {
            "ids": rng.integers(0, ROWS, (BIG_BATCH, 2)),
            "y": rng.random((BIG_BATCH, 1)).astype(np.float32),
        }
        for _ in range(STEPS)
    ]


def shares(trainers: int) -> list[list[Feed]]:
    size = BIG_BATCH // trainers
    return [
        [{k: v[t * size : (t + 1) * size] for k, v in batch.items()} for batch in big_batches()]
        for t in range(trainers)
    ]


def one_process(decay: str, optimizer: str = "sgd") -> Outcome:
    program, loss = model(decay, optimizer)
    scope = psrt.Scope()
    scope.init_parameters(program)
    executor = psrt.Executor(program, scope)
    for batch in big_batches():
        executor.run(batch, [loss], roles=("forward", "backward", "optimize"))
    dense = {name: scope[name] for name in program.parameters if name != "t"}
    return Outcome(dense, {"t": dict(enumerate(scope["t"]))})


def assert_alike(outcome: Outcome, truth: Outcome, tolerance: float) -> None:
    assert outcome.dense.keys() == truth.dense.keys()
    for name, values in outcome.dense.items():
        assert np.abs(values - truth.dense[name]).max() <= tolerance, name
    for id_, row in outcome.rows["t"].items():
        assert np.abs(row - truth.rows["t"][id_]).max() <= tolerance, id_


@every_decay
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize(("trainers", "pservers"), [(1, 2), (2, 1), (3, 2)])
def test_rounds_give_the_parameters_of_one_process_with_the_big_batch(
    decay: str, optimizer: str, trainers: int, pservers: int
) -> None:
    program, loss = model(decay, optimizer)

    outcome = train(program, loss, shares(trainers), pservers)

    assert_alike(outcome, one_process(decay, optimizer), 1e-5)


@every_decay
def test_trainers_that_touch_other_rows_do_not_weaken_the_decay_of_a_row(decay: str) -> None:
    touched = [{int(i) for batch in share for i in batch["ids"].flat} for share in shares(3)]
    partly = set.union(*touched) - set.intersection(*touched)
    program, loss = model(decay)

    outcome = train(program, loss, shares(3), 1)

    truth = one_process(decay)
    assert partly
    for id_ in partly - {0}:
        np.testing.assert_allclose(outcome.rows["t"][id_], truth.rows["t"][id_], atol=1e-5)


@every_decay
def test_the_number_of_pservers_does_not_change_a_single_bit(decay: str) -> None:
    program, loss = model(decay)

    one, three = (train(program, loss, shares(2), pservers) for pservers in (1, 3))

    assert all(
        values.tobytes() == three.dense[name].tobytes() for name, values in one.dense.items()
    )
    assert {i: row.tobytes() for i, row in one.rows["t"].items()} == {
        i: row.tobytes() for i, row in three.rows["t"].items()
    }


@every_decay
def test_pushes_of_a_trainer_alone_give_the_same_when_it_waits_for_parameters(decay: str) -> None:
    program, loss = model(decay)

    outcome = train(program, loss, shares(1), 2, HalfAsync())

    assert_alike(outcome, one_process(decay), 1e-5)
