"""Operators of vars against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.graph.program import Var

A = np.array([[1.0, 2.0, 4.0], [0.5, 8.0, 16.0]], np.float32)
B = np.array([[2.0, 0.5, 1.0], [3.0, 4.0, 5.0]], np.float32)
W = np.arange(6, dtype=np.float32).reshape(2, 3) / 4 + 1

CASES: dict[str, Callable[[Any, Any], Any]] = {
    "a + b": lambda a, b: a + b,
    "a - b": lambda a, b: a - b,
    "a * b": lambda a, b: a * b,
    "a / b": lambda a, b: a / b,
    "a ** b": lambda a, b: a**b,
    "a + 2": lambda a, b: a + 2,
    "2 + a": lambda a, b: 2 + a,
    "a - 2": lambda a, b: a - 2,
    "2 - a": lambda a, b: 2 - a,
    "a * 2.5": lambda a, b: a * 2.5,
    "2.5 * a": lambda a, b: 2.5 * a,
    "a / 2": lambda a, b: a / 2,
    "2 / a": lambda a, b: 2 / a,
    "a ** 2": lambda a, b: a**2,
    "-a": lambda a, b: -a,
    "a number of numpy": lambda a, b: np.float32(3) * a - np.int64(2),
    "an expression": lambda a, b: (a - b) ** 2 / (a + b) + 1,
}


def computed(make: Callable[..., Any], **feed: np.ndarray) -> np.ndarray:
    with psrt.program() as program:
        made = make(*(layers.data(name, shape=each.shape[1:]) for name, each in feed.items()))
    (found,) = psrt.Executor(program, psrt.Scope()).run(feed, [made], roles=("forward",))
    return np.asarray(found)


@pytest.mark.parametrize("name", CASES)
def test_an_operator_is_that_of_numpy(name: str) -> None:
    found = computed(CASES[name], a=A, b=B)

    np.testing.assert_allclose(found, CASES[name](A, B), rtol=1e-6)


def test_a_matrix_product() -> None:
    def make(a: Var, b: Var) -> Var:
        return a @ layers.fill_constant((3, 2), "float32", 0.5) + b

    expected = A @ np.full((3, 2), 0.5, np.float32) + B[:, :2]
    np.testing.assert_allclose(computed(make, a=A, b=B[:, :2].copy()), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda a, mean: a + mean,
        lambda a, mean: mean + a,
        lambda a, mean: mean - a,
        lambda a, mean: mean / a,
        lambda a, mean: mean * a,
    ],
)
def test_the_smaller_operand_is_broadcast_on_either_side(make: Callable[..., Any]) -> None:
    found = computed(lambda a: make(a, layers.mean(a)), a=A)

    np.testing.assert_allclose(found, make(A, A.mean()), rtol=1e-5)


def test_an_operator_has_a_gradient_and_names_the_line() -> None:
    with psrt.program() as program:
        x = layers.data("x", shape=(3,))
        w = layers.create_parameter((3,), param="w")
        loss = layers.mean((x * w - 1) ** 2)
        psrt.optimizer.Sgd(0.1).minimize(loss)

    assert program.ops[0].origin.startswith("test_operators.py:")
    assert "w" in program.trained()[0].name


@pytest.mark.parametrize("other", ["text", None, [1.0]])
def test_what_is_no_number_and_no_var_is_a_type_error_of_python(other: Any) -> None:
    with psrt.program():
        x = layers.data("x", shape=(3,))

        with pytest.raises(TypeError, match="unsupported operand"):
            x + other
        with pytest.raises(TypeError, match="unsupported operand"):
            other - x


def test_vars_of_a_program_are_still_values() -> None:
    with psrt.program() as program:
        x = layers.data("x", shape=(3,))

    assert x == program.vars["x"]
    assert {x: 1}[x] == 1
