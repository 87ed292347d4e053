"""A model trained on pservers and the same model trained by one executor end alike.

One trainer and two pservers, every optimizer, a dense layer and a sparse table, with clipping and
regularisation: the same kernels run on both sides, so the results agree to the last bits.
"""

from __future__ import annotations

import numpy as np
import pytest

from psrt import Executor, Model, Param, Program, Scope, clip, initializer, layers, regularizer
from psrt import program as new_program
from psrt.core import specs
from psrt.graph.optimizer import Declaration
from tests.support.cluster import Feed, train
from tests.support.optimizer_formulas import CTR, EAGER, OPTIMIZERS

ROWS, WIDTH, STEPS, BATCH = 30, 4, 5, 8
EVERY = OPTIMIZERS | CTR
WARMED = specs.Warmup(specs.InverseTimeDecay(0.05, 4, 0.5), 2, 0.01, 0.05)


def model(optimizer: specs.Optimizer) -> tuple[Program, str]:
    with new_program(seed=3) as program:
        ids = layers.data("ids", (2,), "int64")
        table = Param("t", initializer.Uniform(-0.5, 0.5))
        rows = layers.embedding(ids, (ROWS, WIDTH), is_sparse=True, param=table)
        hidden = layers.fc(layers.reshape(rows, (-1, 2 * WIDTH)), 16, act="relu")
        out = layers.fc(hidden, 1)
        loss = layers.mean(layers.square_error_cost(out, layers.data("y")))
        Model(
            loss,
            optimizer=Declaration(
                optimizer, WARMED, regularizer.L2Decay(0.01), clip.ByGlobalNorm(2.0)
            ),
        )
    return program, loss.name


def batches() -> list[Feed]:
    rng = np.random.default_rng(4)
    return [
        {"ids": rng.integers(0, ROWS, (BATCH, 2)), "y": rng.random((BATCH, 1)).astype(np.float32)}
        for _ in range(STEPS)
    ]


@pytest.mark.parametrize("name", EAGER)
def test_a_pserver_without_a_row_of_the_batch_moves_its_other_rows_all_the_same(name: str) -> None:
    program, loss = model(EAGER[name])
    one_row = [
        {"ids": np.full((1, 2), i), "y": np.ones((1, 1), np.float32)} for i in (3, 4, 5, 6, 3)
    ]

    one = train(program, loss, [one_row], pservers=1).rows["t"]
    four = train(program, loss, [one_row], pservers=4).rows["t"]

    assert {i: row.tobytes() for i, row in one.items()} == {
        i: row.tobytes() for i, row in four.items()
    }


@pytest.mark.parametrize("name", EVERY)
def test_pservers_and_local_training_agree(name: str) -> None:
    program, loss = model(EVERY[name])
    scope = Scope()
    scope.init_parameters(program)
    executor = Executor(program, scope)
    for feed in batches():
        executor.run(feed, roles=("forward", "backward", "optimize"))

    outcome = train(program, loss, [batches()], pservers=2)

    assert set(outcome.rows["t"]) == {int(i) for feed in batches() for i in feed["ids"].flat}
    for row_id, row in outcome.rows["t"].items():
        np.testing.assert_allclose(row, scope["t"][row_id], rtol=1e-5, atol=1e-6)
    for parameter, values in outcome.dense.items():
        np.testing.assert_allclose(values, scope[parameter], rtol=1e-5, atol=1e-6)
