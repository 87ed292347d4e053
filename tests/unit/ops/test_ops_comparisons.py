"""Comparisons and logic against numpy, open sizes, states, and gradients of strided parts."""

from __future__ import annotations

import numpy as np
import pytest

from psrt import Executor, Scope, layers, program
from psrt.core.errors import ProgramError
from psrt.core.types import Array
from psrt.graph.program import Var
from tests.support.gradcheck import check_gradients

RNG = np.random.default_rng(23)
X = RNG.integers(0, 3, (5, 4)).astype(np.float32)
Y = RNG.integers(0, 3, (5, 4)).astype(np.float32)

COMPARISONS = {
    "less_than": np.less,
    "less_equal": np.less_equal,
    "greater_than": np.greater,
    "greater_equal": np.greater_equal,
    "equal": np.equal,
    "not_equal": np.not_equal,
}
LOGICAL = {
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}


@pytest.mark.parametrize("name", COMPARISONS)
def test_vars_are_compared_and_a_column_with_each(name: str) -> None:
    with program() as p:
        x, y = layers.data("x", (4,)), layers.data("y", (4,))
        column = layers.slice(y, [1], [0], [1])
        outs = [getattr(layers, name)(x, y), getattr(layers, name)(x, column)]

    found = Executor(p, Scope()).run({"x": X, "y": Y}, outs)

    assert found[0].dtype == np.bool_
    np.testing.assert_array_equal(found[0], COMPARISONS[name](X, Y))
    np.testing.assert_array_equal(found[1], COMPARISONS[name](X, Y[:, :1]))


@pytest.mark.parametrize("name", LOGICAL)
def test_bools_are_combined(name: str) -> None:
    with program() as p:
        x, y = layers.data("x", (4,)), layers.data("y", (4,))
        two, zero = (layers.fill_constant((1,), "float32", value) for value in (2, 0))
        a, b = layers.equal(x, two), layers.greater_than(y, zero)
        outs = [getattr(layers, name)(a, b), layers.logical_not(a)]

    found = Executor(p, Scope()).run({"x": X, "y": Y}, outs)

    np.testing.assert_array_equal(found[0], LOGICAL[name](X == 2, Y > 0))
    np.testing.assert_array_equal(found[1], X != 2)


def test_what_is_no_bool_is_not_combined() -> None:
    with program(), pytest.raises(ProgramError, match="argument x must hold bools"):
        layers.logical_and(layers.data("x", (4,)), layers.data("y", (4,)))


# --- sizes that differ from batch to batch --------------------------------------------------------


def attention() -> Var:
    """Rows (rows, any, 3), weighted by a softmax of their own scores, as DIN does."""
    seen = layers.data("seen", (-1, 3))
    hidden = layers.fc(seen, 4, act="tanh", num_flatten_dims=2)
    scores = layers.transpose(layers.fc(hidden, 1, num_flatten_dims=2), [0, 2, 1])
    together = layers.matmul(layers.softmax(scores), hidden)
    return layers.reduce_sum(layers.fc(layers.reshape(together, (0, 4)), 1, bias=False))


@pytest.mark.parametrize("length", [1, 2, 5])
def test_an_inner_size_may_differ_from_batch_to_batch(length: int) -> None:
    check_gradients(attention, {"seen": RNG.normal(size=(3, length, 3)).astype(np.float32)})


def test_parts_of_open_sizes_are_joined_cut_and_reshaped() -> None:
    with program() as p:
        a, b = layers.data("a", (-1, 2)), layers.data("b", (-1, 2))
        joined = layers.concat([a, b], axis=1)
        outs = [joined, layers.slice(a, [1], [0], [1]), layers.reshape(joined, (0, 0, 2, 1))]
    feed = {"a": RNG.normal(size=(3, 4, 2)), "b": RNG.normal(size=(3, 5, 2))}
    fed = {name: values.astype(np.float32) for name, values in feed.items()}

    found: list[Array] = Executor(p, Scope()).run(fed, outs)  # type: ignore[assignment]

    both = np.concatenate([fed["a"], fed["b"]], axis=1)
    np.testing.assert_array_equal(found[0], both)
    np.testing.assert_array_equal(found[1], fed["a"][:, :1])
    np.testing.assert_array_equal(found[2], both[..., None])


# --- states ---------------------------------------------------------------------------------------


def test_a_state_keeps_its_value_from_step_to_step() -> None:
    with program() as p:
        layers.data("x", (4,))
        counter = layers.create_state((1,), 2, "int64", "counter")
        layers.set_state(counter, layers.scale(counter, bias=3))
        after = layers.scale(counter)
    scope = Scope()
    scope.reset_state(p)
    executor = Executor(p, scope)

    found = [executor.run({"x": X}, [after])[0].tolist() for _ in range(3)]  # type: ignore[union-attr]

    assert found == [[5], [8], [11]]
    assert scope["counter"].tolist() == [11]


# --- gradients that are some columns of a wider one -----------------------------------------------


@pytest.mark.parametrize("filter_size", [1, 2])
def test_gradient_of_a_convolution_beside_another(filter_size: int) -> None:
    def build() -> Var:
        maps = layers.reshape(layers.fc(layers.data("x", (4,)), 12, act="tanh"), (-1, 3, 2, 2))
        parts = [
            layers.reshape(
                layers.conv2d(maps, 2, filter_size, act=act), (-1, 2, (3 - filter_size) ** 2)
            )
            for act in ("relu", None)
        ]
        return layers.reduce_sum(layers.tanh(layers.concat(parts, axis=1)))

    check_gradients(build, {"x": RNG.normal(size=(5, 4)).astype(np.float32)})


def test_where_takes_from_one_of_two_and_sends_gradients_to_what_it_took() -> None:
    def build() -> Var:
        given = layers.data("x", (3,))
        x, y = (layers.fc(given, 3, param=name) for name in "ab")
        rows = layers.less_than(layers.data("p", (1,)), layers.data("q", (1,)))
        taken = layers.where(rows, x, layers.where(layers.less_than(x, y), x, layers.square(y)))
        return layers.reduce_sum(layers.fc(taken, 1, param="last"))

    rng = np.random.default_rng(4)
    feed = {"x": rng.normal(size=(4, 3)), "p": np.array([[1.0], [2], [3], [4]])}

    check_gradients(build, feed | {"q": np.array([[2.0], [2], [2], [8]])})
