"""A step of a batch size seen before allocates nothing the size of the batch."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from psrt import Executor, Scope, layers, program
from psrt.graph.backward import append_backward
from psrt.graph.program import Var
from tests.support.forward import trained

ROWS, WIDTH = 256, 400
BATCH_BYTES = ROWS * WIDTH * 4


def _x() -> Var:
    return trained("x", (WIDTH,))


def _y() -> Var:
    return layers.elementwise_mul(layers.data("y", (WIDTH,)), layers.create_parameter((WIDTH,)))


def _cubes(x: Var) -> Var:
    return layers.reshape(x, (-1, 20, 20))


def _arithmetic(name: str) -> Callable[[], Var]:
    """On vars of one shape, with a row, with a column."""

    def build() -> Var:
        layer = getattr(layers, f"elementwise_{name}")
        x = layers.exp(_x())
        row = layers.exp(layers.create_parameter((WIDTH,)))
        column = layers.exp(layers.slice(x, [1], [0], [1]))
        return layer(layer(layer(x, layers.square(x)), row), column)  # type: ignore[no-any-return]

    return build


def _function(name: str) -> Callable[[], Var]:
    return lambda: layers.scale(layers.square(_x()), bias=0.5, act=name)


CASES: dict[str, Callable[[], Var]] = {
    **{name: _arithmetic(name) for name in ("add", "sub", "mul", "div", "max", "min", "pow")},
    **{name: _function(name) for name in ("relu", "gelu", "swish", "softsign", "rsqrt", "softmax")},
    "log_softmax": _function("log_softmax"),
    "a function of parts": lambda: layers.gelu(layers.concat([layers.gelu(_x()), _y()])),
    "reduce_mean": lambda: layers.reduce_mean(_cubes(_x()), 1),
    "reduce_max": lambda: layers.reduce_max(_cubes(_x()), 1),
    "reduce_prod": lambda: layers.reduce_prod(_cubes(_x()), 1),
    "cumsum": lambda: layers.cumsum(_x(), exclusive=True, reverse=True),
    "topk": lambda: layers.topk(_x(), 3)[0],
    "l2_normalize": lambda: layers.l2_normalize(_x()),
    "fc": lambda: layers.fc(_cubes(_x()), 20, "relu", num_flatten_dims=2),
    "matmul with a parameter": lambda: layers.matmul(
        _cubes(_x()), layers.create_parameter((30, 20)), transpose_y=True
    ),
    "matmul of a batch": lambda: layers.matmul(_cubes(_x()), _cubes(_y()), transpose_x=True),
    "matmul of all with all": lambda: layers.matmul(_x(), _y(), transpose_y=True),
    "dot": lambda: layers.dot(_x(), _y()),
    "split": lambda: layers.sums([layers.gelu(part) for part in layers.split(_x(), 2)]),
    "stack": lambda: layers.stack([layers.gelu(_x()), _y()]),
    "transpose": lambda: layers.gelu(layers.transpose(_cubes(_x()), [0, 2, 1])),
    "expand": lambda: layers.expand(_x(), [1, 2]),
}


@pytest.mark.parametrize("case", CASES)
def test_steady_step_allocates_nothing_large(case: str) -> None:
    with program() as p:
        append_backward(p, layers.mean(layers.square(CASES[case]())))
    scope = Scope()
    scope.init_parameters(p)
    executor = Executor(p, scope)
    batch = np.random.default_rng(1).normal(0.0, 0.3, (ROWS, WIDTH)).astype(np.float32)
    feed = {var.name: batch for var in p.data_vars()}
    for _ in range(3):
        executor.run(feed)

    tracemalloc.start()
    executor.run(feed)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak_bytes < BATCH_BYTES / 2
