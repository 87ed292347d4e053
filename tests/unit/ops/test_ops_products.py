"""fc, matmul, mul, dot: against numpy and finite differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from psrt import Ragged, layers, program
from psrt.core.errors import ProgramError
from psrt.core.types import Array, Shape
from psrt.graph.program import Var
from tests.support.forward import total, trained, trained_lists, value_of
from tests.support.gradcheck import check_gradients

RNG = np.random.default_rng(6)
ROWS = 4
LISTS = Ragged.of([[1.0, 2.0], [], [-3.0]], np.float32)


def batch(*shape: int) -> Array:
    return RNG.normal(size=(ROWS, *shape)).astype(np.float32)


def turned(x: Array, transpose: bool) -> Array:
    return x.swapaxes(-1, -2) if transpose else x


def exchanged(shape: Shape, transpose: bool) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2]) if transpose else shape


# --- matmul ---------------------------------------------------------------------------------------

INNER = [((2, 3), (3, 5)), ((2, 2, 3), (2, 3, 5)), ((2, 2, 3), (1, 3, 5))]
"""Shapes of one example."""


@pytest.mark.parametrize("transpose_x", [False, True])
@pytest.mark.parametrize("transpose_y", [False, True])
@pytest.mark.parametrize(("x_shape", "y_shape"), INNER)
def test_matmul_of_a_matrix_for_each_example(
    x_shape: Shape, y_shape: Shape, transpose_x: bool, transpose_y: bool
) -> None:
    x, y = batch(*exchanged(x_shape, transpose_x)), batch(*exchanged(y_shape, transpose_y))

    def product(left: Var, right: Var) -> Var:
        return layers.matmul(left, right, transpose_x, transpose_y, alpha=0.5)

    found = value_of(
        lambda: product(layers.data("x", x.shape[1:]), layers.data("y", y.shape[1:])),
        {"x": x, "y": y},
    )

    expected = 0.5 * turned(x, transpose_x) @ turned(y, transpose_y)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    check_gradients(
        lambda: total(product(trained("x", x.shape[1:]), trained("y", y.shape[1:]))),
        {"x": x, "y": y},
    )


@pytest.mark.parametrize("transpose_y", [False, True])
@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_matmul_with_a_parameter(shape: Shape, transpose_y: bool) -> None:
    x, w = batch(*shape), RNG.normal(size=exchanged((3, 5), transpose_y)).astype(np.float32)

    def product(left: Var) -> Var:
        right = layers.create_parameter(w.shape, "w")
        return layers.matmul(left, right, transpose_y=transpose_y, alpha=2.0)

    found = value_of(lambda: product(layers.data("x", shape)), {"x": x}, {"w": w})

    np.testing.assert_allclose(found, 2 * x @ turned(w, transpose_y), rtol=1e-4, atol=1e-5)
    check_gradients(lambda: total(product(trained("x", shape))), {"x": x})


@pytest.mark.parametrize("transpose_x", [False, True])
def test_matmul_of_one_matrix_with_that_of_each_example(transpose_x: bool) -> None:
    y, w = batch(3, 5), RNG.normal(size=exchanged((2, 3), transpose_x)).astype(np.float32)

    def product(right: Var) -> Var:
        return layers.matmul(layers.create_parameter(w.shape, "w"), right, transpose_x)

    found = value_of(lambda: product(layers.data("y", (3, 5))), {"y": y}, {"w": w})

    np.testing.assert_allclose(found, turned(w, transpose_x) @ y, rtol=1e-4, atol=1e-5)
    check_gradients(lambda: total(product(trained("y", (3, 5)))), {"y": y})


def test_matmul_of_two_parameters() -> None:
    a, b = (RNG.normal(size=shape).astype(np.float32) for shape in ((2, 3), (3, 4)))

    def product() -> Var:
        layers.data("x")
        return layers.matmul(
            layers.create_parameter((2, 3), "a"), layers.create_parameter((3, 4), "b")
        )

    found = value_of(product, {"x": batch(1)}, {"a": a, "b": b})

    np.testing.assert_allclose(found, a @ b, rtol=1e-5)
    check_gradients(lambda: layers.reduce_sum(layers.square(product())), {"x": batch(1)})


def test_matmul_of_examples_with_examples() -> None:
    x, y = batch(3), batch(3)

    def product(left: Var, right: Var) -> Var:
        return layers.matmul(left, right, transpose_y=True)

    found = value_of(
        lambda: product(layers.data("x", (3,)), layers.data("y", (3,))), {"x": x, "y": y}
    )

    np.testing.assert_allclose(found, x @ y.T, rtol=1e-4, atol=1e-6)
    check_gradients(
        lambda: total(layers.log_softmax(product(trained("x", (3,)), trained("y", (3,))))),
        {"x": x, "y": y},
    )


def test_matmul_over_the_examples_adds_them_up() -> None:
    x, y = batch(3), batch(2)

    def product(left: Var, right: Var) -> Var:
        return layers.matmul(left, right, transpose_x=True)

    found = value_of(
        lambda: product(layers.data("x", (3,)), layers.data("y", (2,))), {"x": x, "y": y}
    )

    np.testing.assert_allclose(found, x.T @ y, rtol=1e-4, atol=1e-6)
    check_gradients(
        lambda: layers.reduce_sum(layers.square(product(trained("x", (3,)), trained("y", (2,))))),
        {"x": x, "y": y},
    )


def test_matmul_of_ragged_rows_stays_ragged() -> None:
    w = RNG.normal(size=(1, 4)).astype(np.float32)

    def product() -> Var:
        elements = layers.reshape(layers.data("x", ragged=True), (-1, 1))
        return layers.matmul(elements, layers.create_parameter((1, 4), "w"))

    found = value_of(product, {"x": LISTS}, {"w": w})

    assert isinstance(found, Ragged)
    np.testing.assert_array_equal(found.offsets, LISTS.offsets)
    np.testing.assert_allclose(found.values, LISTS.values[:, None] @ w, rtol=1e-6)
    check_gradients(
        lambda: total(layers.matmul(trained_lists("x", 2), layers.create_parameter((2, 3)))),
        {"x": LISTS},
    )


# --- mul, dot -------------------------------------------------------------------------------------


def test_mul_flattens_both_sides() -> None:
    x, w = batch(2, 3, 2), RNG.normal(size=(3, 2, 5, 2)).astype(np.float32)

    def product(left: Var) -> Var:
        return layers.mul(left, layers.create_parameter(w.shape, "w"), 2, 2)

    found = value_of(lambda: product(layers.data("x", (2, 3, 2))), {"x": x}, {"w": w})

    expected = np.tensordot(x, w, axes=([2, 3], [0, 1]))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    check_gradients(lambda: total(product(trained("x", (2, 3, 2)))), {"x": x})


@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_dot_of_rows(shape: Shape) -> None:
    x, y = batch(*shape), batch(*shape)

    found = value_of(
        lambda: layers.dot(layers.data("x", shape), layers.data("y", shape)), {"x": x, "y": y}
    )

    np.testing.assert_allclose(found, (x * y).sum(axis=-1, keepdims=True), rtol=1e-4, atol=1e-6)
    check_gradients(
        lambda: total(layers.dot(trained("x", shape), trained("y", shape))), {"x": x, "y": y}
    )


def test_dot_of_ragged_rows() -> None:
    def build() -> Var:
        x = trained_lists("x", 2)
        return total(layers.dot(x, layers.tanh(x)))

    check_gradients(build, {"x": LISTS})


# --- fc -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("act", [None, "relu", "gelu"])
@pytest.mark.parametrize(("kept", "width"), [(1, 6), (2, 2)])
def test_fc_keeps_the_dimensions_it_is_told_to(act: str | None, kept: int, width: int) -> None:
    x, w = batch(3, 2), RNG.normal(size=(width, 5)).astype(np.float32)

    def layer(input: Var, act: str | None) -> Var:
        return layers.fc(input, 5, act, param="w", num_flatten_dims=kept)

    found = value_of(lambda: layer(layers.data("x", (3, 2)), None), {"x": x}, {"w": w})

    expected = x.reshape(*x.shape[:kept], -1) @ w
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    check_gradients(lambda: total(layer(trained("x", (3, 2)), act)), {"x": x})


def test_fc_over_several_inputs_of_three_dimensions() -> None:
    def build() -> Var:
        x = trained("x", (3, 2))
        return total(layers.fc([x, layers.tanh(x)], 4, "relu", num_flatten_dims=2))

    check_gradients(build, {"x": batch(3, 2)})


@pytest.mark.parametrize("act", [None, "relu", "swish"])
def test_fc_of_ragged_rows_stays_ragged(act: str | None) -> None:
    w = RNG.normal(size=(1, 4)).astype(np.float32)

    found = value_of(
        lambda: layers.fc(layers.reshape(layers.data("x", ragged=True), (-1, 1)), 4, param="w"),
        {"x": LISTS},
        {"w": w},
    )

    assert isinstance(found, Ragged)
    np.testing.assert_allclose(found.values, LISTS.values[:, None] @ w, rtol=1e-6)
    check_gradients(lambda: total(layers.fc(trained_lists("x", 2), 3, act)), {"x": LISTS})


# --- refusals -------------------------------------------------------------------------------------


def _x(*shape: int, name: str = "x") -> Var:
    return layers.data(name, shape)


REFUSALS: dict[str, tuple[Callable[[], object], str]] = {
    "matrices that do not fit": (
        lambda: layers.matmul(_x(3), layers.create_parameter((4, 5))),
        r"layers.matmul .*argument y of shape \(4, 5\).*argument x of shape \(-1, 3\)",
    ),
    "a row as a matrix": (
        lambda: layers.matmul(_x(3), layers.create_parameter((3,))),
        r"argument y must have 2 dimensions, not float32 \(3,\)",
    ),
    "a product of ids": (
        lambda: layers.matmul(layers.data("x", (3,), "int64"), layers.create_parameter((3, 2))),
        r"argument x must hold floats, not int64 \(-1, 3\)",
    ),
    "numbers of matrices that do not broadcast": (
        lambda: layers.matmul(_x(2, 3, 4), _x(3, 4, 2, name="y")),
        r"argument y of shape \(-1, 3\) does not broadcast to argument x of shape \(-1, 2\)",
    ),
    "elements moved by matmul": (
        lambda: layers.matmul(
            layers.reshape(layers.data("x", ragged=True), (-1, 1)),
            layers.create_parameter((4, 2)),
            transpose_x=True,
        ),
        r"argument x is ragged float32 \(-1, 1\), whose elements transpose_x would move",
    ),
    "mul of columns that are not there": (
        lambda: layers.mul(_x(3), layers.create_parameter((3, 2)), x_num_col_dims=2),
        r"argument x_num_col_dims 2 does not fit float32 \(-1, 3\)",
    ),
    "dot of rows of two sizes": (
        lambda: layers.dot(_x(3), _x(4, name="y")),
        r"argument y is float32 \(-1, 4\), argument x is float32 \(-1, 3\)",
    ),
    "fc that keeps all dimensions": (
        lambda: layers.fc(_x(3), 2, num_flatten_dims=2),
        r"argument num_flatten_dims 2 does not fit input of type float32 \(-1, 3\)",
    ),
    "fc of inputs with different rows": (
        lambda: layers.fc([_x(2, 3), _x(4, 3, name="y")], 2, num_flatten_dims=2),
        r"argument input has float32 \(-1, 2, 3\) and float32 \(-1, 4, 3\)",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_illegal_call_is_refused(case: str) -> None:
    call, complaint = REFUSALS[case]

    with program(), pytest.raises(ProgramError, match=complaint):
        call()
