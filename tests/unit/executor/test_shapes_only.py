"""Inputs of which an op type reads only the shape can be overwritten before it runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.executor.compute import SHAPES_ONLY
from psrt.executor.program.compiled import Compiled
from psrt.executor.program.sequential import Executor
from psrt.graph.program import Var


def x() -> Var:
    """A computed var (rows, 4) that needs a gradient."""
    return layers.fc(layers.data("x", (4,)), 4)


def image() -> Var:
    return layers.reshape(layers.fc(layers.data("x", (4,)), 16), (-1, 1, 4, 4))


def rows() -> Var:
    layers.data("x", (4,))
    return layers.embedding(layers.data("ids", dtype="int64", ragged=True), (9, 3))


LAYERS: dict[str, Callable[[], Var]] = {
    "concat_grad": lambda: layers.concat([x(), layers.data("y", (2,))]),
    "elementwise_add_grad": lambda: layers.elementwise_add(x(), layers.create_parameter((4,))),
    "elementwise_sub_grad": lambda: layers.elementwise_sub(x(), layers.create_parameter((4,))),
    "expand_grad": lambda: layers.expand(x(), [1, 2]),
    "mean_grad": lambda: layers.mean(x()),
    "pool2d_grad": lambda: layers.pool2d(image(), 2, "avg"),
    "reduce_mean_grad": lambda: layers.reduce_mean(x(), dim=1),
    "reduce_sum_grad": lambda: layers.reduce_sum(x(), dim=1),
    "reshape_grad": lambda: layers.reshape(x(), (-1, 2, 2)),
    "sequence_pool_grad": lambda: layers.sequence_pool(rows(), "max"),
    "slice_between_grad": lambda: layers.slice(
        x(), [1], [layers.fill_constant([1], "int64", 0)], [2]
    ),
    "slice_grad": lambda: layers.slice(x(), axes=[1], starts=[0], ends=[2]),
}


def test_every_declared_type_is_tried_here():
    assert LAYERS.keys() == SHAPES_ONLY.keys()


@pytest.mark.parametrize("type", LAYERS)
def test_gradient_does_not_depend_on_values_it_does_not_read(type):
    with psrt.program(seed=4) as program:
        out = LAYERS[type]()
        loss = out if out.shape == () else layers.reduce_sum(layers.square(out))
        psrt.optimizer.Sgd(0.1).minimize(loss)
    scope = psrt.Scope()
    scope.init_parameters(program)
    rng = np.random.default_rng(0)
    feed = {
        "x": rng.standard_normal((3, 4), np.float32),
        "y": rng.standard_normal((3, 2), np.float32),
        "ids": psrt.Ragged.of([[1, 2], [], [8, 3, 3]]),
    }
    fed = {name: value for name, value in feed.items() if name in program.vars}
    executor = Executor(program, scope)
    executor.run(fed)
    expected = {name: np.array(g) for name, g in executor.gradients().items()}

    compiled: Compiled = executor._compiled
    poisoned = [spoil_before(compiled, type)]
    executor.run(fed)

    assert any(poisoned)
    for name, gradient in executor.gradients().items():
        np.testing.assert_array_equal(gradient, expected[name], err_msg=name)


def spoil_before(compiled: Compiled, type: str) -> bool:
    """Before ops of `type` run, fill what they only want the shapes of with NaN."""
    found = False
    for at, (op, step) in enumerate(compiled.steps["backward"]):
        if op.type != type:
            continue
        cells = [compiled.cells[n] for slot in SHAPES_ONLY[type] for n in op.inputs[slot] if n]
        found = True

        def spoiled(step=step, cells=cells) -> None:
            for cell in cells:
                if cell.memory.size_bytes:  # its own, neither fed nor a parameter
                    cell.value.fill(np.nan)
            step()

        compiled.steps["backward"][at] = (op, spoiled)
    return found
