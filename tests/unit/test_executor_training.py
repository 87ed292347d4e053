"""Local training of a linear model with each optimizer against a plain numpy loop."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from psrt import Executor, Model, Param, Scope, initializer, layers, optimizer, program
from psrt.core.types import F64, Array
from psrt.graph.optimizer import Declaration

STEPS, BATCH, WIDTH = 12, 8, 5
RNG = np.random.default_rng(5)
X = RNG.normal(size=(STEPS, BATCH, WIDTH)).astype(np.float32)
Y = (X @ RNG.normal(size=(WIDTH, 1)) + 0.5).astype(np.float32)
IDS = RNG.integers(0, 7, size=(STEPS, BATCH, 1))
ALL = ("forward", "backward", "optimize")


def sgd(w: F64, g: F64, state: dict[str, F64], t: int, lr: float) -> None:
    w -= lr * g


def adagrad(w: F64, g: F64, state: dict[str, F64], t: int, lr: float) -> None:
    m = state.setdefault("m", np.full_like(w, 0.1))
    m += g * g
    w -= lr * g / (np.sqrt(m) + 1e-6)


def adam(w: F64, g: F64, state: dict[str, F64], t: int, lr: float) -> None:
    m, v = state.setdefault("m", np.zeros_like(w)), state.setdefault("v", np.zeros_like(w))
    m += (1 - 0.9) * (g - m)
    v += (1 - 0.999) * (g * g - v)
    w -= lr * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)


OPTIMIZERS: dict[str, tuple[Declaration, Callable[..., None]]] = {
    "sgd": (optimizer.Sgd(0.05), sgd),
    "adagrad": (optimizer.Adagrad(0.05, initial_accumulator=0.1), adagrad),
    "adam": (optimizer.Adam(0.05), adam),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_linear_model_follows_the_numpy_loop(name: str) -> None:
    declared, update = OPTIMIZERS[name]
    with program() as p:
        out = layers.fc(layers.data("x", (WIDTH,)), 1)
        loss = layers.mean(layers.square_error_cost(out, layers.data("y")))
        Model(loss, optimizer=declared)
    scope = Scope()
    scope.init_parameters(p)
    w, b = (scope[f"fc_0.{end}"].astype(np.float64) for end in ("w_0", "b_0"))
    executor, states = Executor(p, scope), ({}, {})  # type: ignore[var-annotated]

    for step in range(STEPS):
        (found,) = executor.run({"x": X[step], "y": Y[step]}, [loss], roles=ALL)
        error = X[step] @ w + b - Y[step]
        update(w, X[step].T @ (2 * error) / BATCH, states[0], step + 1, 0.05)
        update(b, (2 * error / BATCH).sum(axis=0), states[1], step + 1, 0.05)

        assert float(found) == pytest.approx(float((error**2).mean()), rel=1e-4)  # type: ignore[arg-type]
        np.testing.assert_allclose(scope["fc_0.w_0"], w, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(scope["fc_0.b_0"], b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_sparse_table_moves_touched_rows_by_their_own_count(name: str) -> None:
    declared, update = OPTIMIZERS[name]
    with program() as p:
        param = Param("t", initializer.Uniform(-1.0, 1.0))
        rows = layers.embedding(
            layers.data("ids", (1,), "int64"), (9, 3), is_sparse=True, param=param
        )
        Model(layers.reduce_sum(layers.elementwise_mul(rows, rows)), optimizer=declared)
    scope = Scope()
    scope.init_parameters(p)
    w = scope["t"].astype(np.float64)
    states: list[dict[str, F64]] = [{} for _ in w]
    counts: Array = np.zeros(len(w), np.int64)
    executor = Executor(p, scope)

    for step in range(STEPS):
        executor.run({"ids": IDS[step]}, roles=ALL)
        for i in np.unique(IDS[step]):
            times = int((IDS[step] == i).sum())
            counts[i] += 1
            update(w[i], 2.0 * times * w[i].copy(), states[i], int(counts[i]), 0.05)

    np.testing.assert_allclose(scope["t"], w, rtol=1e-4, atol=1e-5)


def test_learning_rate_follows_its_schedule() -> None:
    schedule = optimizer.PiecewiseDecay((1, 2), (1.0, 0.1, 0.01))
    with program() as p:
        out = layers.fc(
            layers.data("x"), 1, param=Param("w", initializer.Constant(0.0)), bias=False
        )
        Model(layers.mean(out), optimizer=optimizer.Sgd(schedule))
    scope = Scope()
    scope.init_parameters(p)
    executor = Executor(p, scope)

    seen = []
    for _ in range(4):
        executor.run({"x": np.ones((2, 1), np.float32)}, roles=ALL)
        seen.append(float(scope["w"][0, 0]))

    assert seen == pytest.approx([-1.0, -1.1, -1.11, -1.12])


def test_a_parameter_may_have_a_multiple_of_the_learning_rate() -> None:
    with program() as p:
        twice = Param("w", initializer.Constant(0.0), learning_rate=2.0)
        out = layers.fc(layers.data("x"), 1, param=twice, bias=False)
        Model(layers.mean(out), optimizer=optimizer.Sgd(0.25))
    scope = Scope()
    scope.init_parameters(p)

    Executor(p, scope).run({"x": np.ones((2, 1), np.float32)}, roles=ALL)

    assert scope["w"][0, 0] == pytest.approx(-0.5)


def test_a_parameter_that_is_not_trainable_stays() -> None:
    with program() as p:
        frozen = layers.fc(layers.data("x"), 4, param=Param("w", trainable=False))
        Model(layers.mean(layers.fc(frozen, 1)), optimizer=optimizer.Sgd(0.5))
    scope = Scope()
    scope.init_parameters(p)
    before = scope["w"].copy()

    Executor(p, scope).run({"x": np.ones((2, 1), np.float32)}, roles=ALL)

    np.testing.assert_array_equal(scope["w"], before)
    assert "w" not in {parameter.name for parameter in p.trained()}
