"""One loss trained by two optimizers: FTRL for the wide part, Adam for the deep one.

The truth is one `minimize` of parameters that have optimizers of their own.
"""

from __future__ import annotations

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt import Executor, Param, Program, Scope, initializer, layers, optimizer
from psrt import program as new_program
from psrt.core.types import F32
from psrt.executor.parallel.parallel import ParallelExecutor
from psrt.executor.strategies import BuildStrategy, ReduceStrategy
from tests.support.cluster import Feed, train

ROWS, WIDTH, STEPS, BATCH = 30, 4, 5, 8
ALL = ("forward", "backward", "optimize")


def by_fluid() -> tuple[Program, str]:
    """Program of `by_one` in Fluid's words."""
    program = fluid.Program()
    program.random_seed = 3
    with fluid.program_guard(program):
        ids, x = fluid.data("ids", [None, 2], "int64"), fluid.data("x", [None, 3])
        start = fluid.initializer.Uniform(-0.5, 0.5)
        wide = fluid.embedding(ids, (ROWS, 1), True, param_attr=fluid.ParamAttr("wide", start))
        deep = fluid.embedding(ids, (ROWS, WIDTH), True, param_attr=fluid.ParamAttr("deep", start))
        rows = fluid.layers.reshape(deep, [-1, 2 * WIDTH])
        hidden = fluid.layers.fc(
            fluid.layers.concat([rows, x], 1), 6, act="relu", param_attr="w", bias_attr="b"
        )
        out = fluid.layers.reduce_sum(wide, 1) + fluid.layers.fc(
            hidden, 1, param_attr="v", bias_attr=False
        )
        error = fluid.layers.square_error_cost(out, fluid.data("y", [None, 1]))
        loss = fluid.layers.mean(error)
        fluid.optimizer.Ftrl(0.1, l1=0.01).minimize(loss, parameter_list=["wide"])
        fluid.optimizer.Adam(0.01, lazy_mode=True).minimize(
            loss, parameter_list=["deep", "w", "b", "v"]
        )
    return program.graph, loss.var.name


def by_one() -> tuple[Program, str]:
    with new_program(seed=3) as program:
        ids, x = layers.data("ids", (2,), "int64"), layers.data("x", (3,))
        start = initializer.Uniform(-0.5, 0.5)
        of_wide = Param("wide", start, optimizer=optimizer.Ftrl(0.1, l1=0.01))
        wide = layers.embedding(ids, (ROWS, 1), is_sparse=True, param=of_wide)
        deep = layers.embedding(ids, (ROWS, WIDTH), is_sparse=True, param=Param("deep", start))
        rows = layers.reshape(deep, (-1, 2 * WIDTH))
        hidden = layers.fc(layers.concat([rows, x], 1), 6, act="relu", param="w", bias="b")
        out = layers.reduce_sum(wide, 1) + layers.fc(hidden, 1, param="v", bias=False)
        loss = layers.mean(layers.square_error_cost(out, layers.data("y")))
        optimizer.Adam(0.01).minimize(loss)
    return program, loss.name


def batches() -> list[Feed]:
    rng = np.random.default_rng(4)
    return [
        {
            "ids": rng.integers(0, ROWS, (BATCH, 2)),
            "x": rng.standard_normal((BATCH, 3), np.float32),
            "y": rng.random((BATCH, 1), np.float32),
        }
        for _ in range(STEPS)
    ]


def trained(program: Program, strategy: ReduceStrategy | None = None) -> dict[str, F32]:
    """Parameters after STEPS of one executor, or of two replicas."""
    scope = Scope()
    scope.init_parameters(program)
    if strategy is None:
        executor: Executor | ParallelExecutor = Executor(program, scope)
    else:
        build = BuildStrategy(reduce_strategy=strategy)
        executor = ParallelExecutor(program, scope, 2, build)
    for feed in batches():
        executor.run(feed, roles=ALL)
    return {name: scope[name] for name in program.parameters}


@pytest.mark.parametrize("strategy", [None, *ReduceStrategy])
def test_two_optimizers_update_by_the_gradient_of_one_loss(strategy: ReduceStrategy | None) -> None:
    made, expected = trained(by_fluid()[0], strategy), trained(by_one()[0], strategy)

    assert made.keys() == expected.keys()
    for name, values in made.items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-6, atol=1e-7, err_msg=name)


def test_pservers_update_by_both() -> None:
    program, loss = by_fluid()
    expected = trained(by_one()[0])

    outcome = train(program, loss, [batches()], pservers=2)

    assert set(outcome.rows) == {"wide", "deep"}
    for table, rows in outcome.rows.items():
        for at, row in rows.items():
            np.testing.assert_allclose(row, expected[table][at], rtol=1e-5, atol=1e-6)
    for name, values in outcome.dense.items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-5, atol=1e-6)
