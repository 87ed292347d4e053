"""Local training with each optimizer against its published formula, in float32 and float64."""

from __future__ import annotations

import numpy as np
import pytest

from psrt import Executor, Model, Param, Program, Scope, initializer, layers, optimizer, program
from psrt.core import specs
from psrt.core.errors import ConfigError, ProgramError
from psrt.core.types import F64
from psrt.executor.memory.bindings import RowBatch
from psrt.graph.optimizer import Declaration
from tests.support.optimizer_formulas import CTR, EAGER, LAZY, OPTIMIZERS, ROW_WISE, Published

STEPS, BATCH, WIDTH = 12, 8, 5
RNG = np.random.default_rng(5)
X = RNG.normal(size=(STEPS, BATCH, WIDTH)).astype(np.float32)
Y = (X @ RNG.normal(size=(WIDTH, 1)) + 0.5).astype(np.float32)
IDS = RNG.integers(0, 7, size=(STEPS, BATCH, 1))
ALL = ("forward", "backward", "optimize")


EVERY = OPTIMIZERS | CTR | ROW_WISE
RATE = 0.05
TOLERANCE = {"float32": 1e-4, "float64": 1e-9}

every_dtype = pytest.mark.parametrize("dtype", TOLERANCE)


def declared(spec: specs.Optimizer) -> Declaration:
    return Declaration(spec, specs.ConstantRate(RATE))


def scope_of(p: Program, dtype: str) -> Scope:
    scope = Scope()
    scope.init_parameters(p)
    for name in p.parameters:
        scope[name] = scope[name].astype(dtype)
    return scope


@every_dtype
@pytest.mark.parametrize("name", EVERY)
def test_linear_model_follows_the_published_formula(name: str, dtype: str) -> None:
    with program() as p:
        bias = Param("b", initializer.Uniform(0.1, 1.0))
        out = layers.fc(layers.data("x", (WIDTH,)), 1, param="w", bias=bias)
        loss = layers.mean(layers.square_error_cost(out, layers.data("y")))
        Model(loss, optimizer=declared(EVERY[name]))
    scope = scope_of(p, dtype)
    w, b = (Published(EVERY[name], scope[end].reshape(-1)) for end in "wb")
    executor = Executor(p, scope, dtype=dtype)

    for x, y in zip(X.astype(dtype), Y.astype(dtype), strict=True):
        (found,) = executor.run({"x": x, "y": y}, [loss], roles=ALL)
        error = x @ w.w[:, None] + b.w - y
        w.apply((x.T @ (2 * error) / BATCH).reshape(-1), RATE)
        b.apply((2 * error / BATCH).sum(axis=0), RATE)

        close = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
        np.testing.assert_allclose(found, (error**2).mean(), **close)  # type: ignore[arg-type]
        np.testing.assert_allclose(scope["w"].reshape(-1), w.w, **close)
        np.testing.assert_allclose(scope["b"], b.w, **close)


def table_trained(spec: specs.Optimizer, dtype: str, published: Published) -> F64:
    """A table of 9 rows after `STEPS` steps of Σ rows²; `published` is told its gradients."""
    with program() as p:
        param = Param("t", initializer.Uniform(-1.0, 1.0))
        ids = layers.data("ids", (1,), "int64")
        rows = layers.embedding(ids, (9, 3), is_sparse=True, param=param)
        loss = layers.reduce_sum(layers.elementwise_mul(rows, rows))
        Model(loss, optimizer=declared(spec))
    scope = scope_of(p, dtype)
    published.w[:] = scope["t"]
    executor = Executor(p, scope, dtype=dtype)
    for ids in IDS:
        executor.run({"ids": ids}, roles=ALL)
        times = np.bincount(ids[:, 0], minlength=9)[:, None]
        published.apply(2.0 * times * published.w, RATE)
    return scope["t"]


class PublishedRows(Published):
    """Each row by itself: one without a gradient stays, and does not count the step."""

    def __init__(self, optimizer: specs.Optimizer) -> None:
        super().__init__(optimizer, np.zeros((9, 3)))
        self.rows = [Published(optimizer, row) for row in self.w]

    def apply(self, gradient: F64, lr: float) -> None:
        for row, g, w in zip(self.rows, gradient, self.w, strict=True):
            row.w = w.copy()
            if g.any():
                row.apply(g, lr)
            w[:] = row.w


@every_dtype
@pytest.mark.parametrize("name", LAZY | CTR | ROW_WISE)
def test_sparse_table_moves_touched_rows_by_their_own_count(name: str, dtype: str) -> None:
    published = PublishedRows(EVERY[name])

    found = table_trained(EVERY[name], dtype, published)

    np.testing.assert_allclose(found, published.w, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@every_dtype
@pytest.mark.parametrize("name", EAGER)
def test_an_optimizer_that_is_not_lazy_moves_all_rows_that_ever_had_a_gradient(
    name: str, dtype: str
) -> None:
    published = Published(EAGER[name], np.zeros((9, 3)))

    found = table_trained(EAGER[name], dtype, published)

    ever = np.unique(IDS[0])
    np.testing.assert_allclose(
        found[ever], published.w[ever], rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]
    )


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


def test_an_id_outside_of_a_table_is_refused_before_a_row_is_written() -> None:
    with program() as p:
        ids = layers.data("ids", (1,), "int64")
        rows = layers.embedding(ids, (4, 3), is_sparse=True, param="t")
        Model(layers.reduce_sum(rows), optimizer=optimizer.Sgd(0.5))
    scope = Scope()
    scope.init_parameters(p)
    before, far = scope["t"].copy(), np.array([[1], [2**40]])
    bound = RowBatch(far[:, 0], np.zeros((2, 3), np.float32), {"ids": np.array([0, 1], np.int32)})

    with pytest.raises(ProgramError, match="Id 1099511627776 is not a row of table t"):
        Executor(p, scope).run({"ids": far}, rows={"t": bound}, roles=ALL)

    np.testing.assert_array_equal(scope["t"], before)


def test_a_schedule_that_cannot_work_is_refused_where_it_is_declared() -> None:
    with pytest.raises(ConfigError, match="decay_steps"):
        optimizer.Momentum(optimizer.PolynomialDecay(1.0, 0))
