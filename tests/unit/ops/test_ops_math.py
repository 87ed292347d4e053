"""Functions of one element, softmax and arithmetic: against numpy and finite differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from psrt import Executor, Ragged, Scope, layers, program
from psrt.core.errors import ProgramError, PsrtError
from psrt.core.types import Array
from psrt.graph.backward import append_backward
from psrt.graph.program import Var
from tests.support.forward import total, trained, trained_lists, value_of
from tests.support.gradcheck import check_gradients

RNG = np.random.default_rng(5)
X: Array = np.concatenate([RNG.normal(0, 2, (5, 3)), [[-30.0, 0.25, 30.0]]]).astype(np.float32)
Y: Array = RNG.normal(size=(6, 3)).astype(np.float32)
POSITIVE: Array = (np.abs(X) % 4 + 0.1).astype(np.float32)
LISTS = Ragged.of([[1.0, 2.0], [], [-3.0]], np.float32)
ERF = np.vectorize(math.erf)


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def gelu_tanh(x: Array) -> Array:
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return np.asarray(x / 2 * (1 + np.tanh(inner)))


Case = tuple[str, dict[str, Any], Callable[[Array], Array]]
ANYWHERE: list[Case] = [
    ("relu", {}, lambda x: np.maximum(x, 0)),
    ("relu6", {}, lambda x: np.clip(x, 0, 6)),
    ("relu6", {"threshold": 1.5}, lambda x: np.clip(x, 0, 1.5)),
    ("leaky_relu", {}, lambda x: np.where(x > 0, x, 0.02 * x)),
    ("leaky_relu", {"alpha": -0.5}, lambda x: np.where(x > 0, x, -0.5 * x)),
    ("elu", {}, lambda x: np.where(x > 0, x, np.expm1(x))),
    ("elu", {"alpha": 0.7}, lambda x: np.where(x > 0, x, 0.7 * np.expm1(x))),
    ("sigmoid", {}, sigmoid),
    ("logsigmoid", {}, lambda x: np.log(sigmoid(x))),
    ("hard_sigmoid", {}, lambda x: np.clip(0.2 * x + 0.5, 0, 1)),
    ("hard_sigmoid", {"slope": 0.1, "offset": 0.3}, lambda x: np.clip(0.1 * x + 0.3, 0, 1)),
    ("tanh", {}, np.tanh),
    ("gelu", {}, lambda x: x / 2 * (1 + ERF(x / math.sqrt(2)))),
    ("gelu", {"approximate": True}, gelu_tanh),
    ("softplus", {}, lambda x: np.log1p(np.exp(x))),
    ("softsign", {}, lambda x: x / (1 + np.abs(x))),
    ("swish", {}, lambda x: x * sigmoid(x)),
    ("swish", {"beta": 0.5}, lambda x: x * sigmoid(0.5 * x)),
    ("square", {}, np.square),
    ("abs", {}, np.abs),
    ("sin", {}, np.sin),
    ("cos", {}, np.cos),
    ("clip", {"min": -0.5, "max": 1.0}, lambda x: np.clip(x, -0.5, 1.0)),
    ("scale", {"scale": 3.0, "bias": -1.0}, lambda x: 3 * x - 1),
    ("scale", {"scale": 3.0, "bias": -1.0, "bias_after_scale": False}, lambda x: 3 * (x - 1)),
    ("softmax", {}, lambda x: np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)),
    ("log_softmax", {}, lambda x: x - np.log(np.exp(x).sum(axis=1, keepdims=True))),
]
ABOVE_ZERO: list[Case] = [
    ("exp", {}, np.exp),
    ("log", {}, np.log),
    ("sqrt", {}, np.sqrt),
    ("rsqrt", {}, lambda x: 1 / np.sqrt(x)),
    ("reciprocal", {}, lambda x: 1 / x),
    ("pow", {"factor": 2.5}, lambda x: x**2.5),
]
FLAT: list[Case] = [
    ("sign", {}, np.sign),
    ("floor", {}, np.floor),
    ("ceil", {}, np.ceil),
    ("round", {}, np.rint),
]


@pytest.mark.parametrize(("name", "attrs", "function"), ANYWHERE + FLAT)
def test_function_is_that_of_numpy(name: str, attrs: dict[str, Any], function: Any) -> None:
    found = value_of(lambda: getattr(layers, name)(layers.data("x", (3,)), **attrs), {"x": X})

    np.testing.assert_allclose(found, function(X.astype(np.float64)), rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize(("name", "attrs", "function"), ABOVE_ZERO)
def test_function_of_positive_numbers(name: str, attrs: dict[str, Any], function: Any) -> None:
    found = value_of(
        lambda: getattr(layers, name)(layers.data("x", (3,)), **attrs), {"x": POSITIVE}
    )

    np.testing.assert_allclose(found, function(POSITIVE.astype(np.float64)), rtol=1e-5)


@pytest.mark.parametrize(("name", "attrs", "function"), ANYWHERE)
def test_gradient_of_function(name: str, attrs: dict[str, Any], function: object) -> None:
    check_gradients(lambda: total(getattr(layers, name)(trained("x", (3,)), **attrs)), {"x": X[:5]})


@pytest.mark.parametrize(("name", "attrs", "function"), ABOVE_ZERO)
def test_gradient_of_function_of_positive_numbers(
    name: str, attrs: dict[str, Any], function: object
) -> None:
    def build() -> Var:
        positive = layers.scale(layers.square(trained("x", (3,))), bias=0.5)
        return total(getattr(layers, name)(positive, **attrs))

    check_gradients(build, {"x": X[:5] / 3})


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_along_another_axis(name: str) -> None:
    cube = RNG.normal(size=(4, 3, 2)).astype(np.float32)
    powers = np.exp(cube.astype(np.float64))
    expected = powers / powers.sum(axis=1, keepdims=True)

    found = value_of(lambda: getattr(layers, name)(layers.data("x", (3, 2)), axis=1), {"x": cube})

    if name == "log_softmax":
        expected = np.log(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    check_gradients(lambda: total(getattr(layers, name)(trained("x", (3, 2)), axis=1)), {"x": cube})


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_large_logits_is_finite(name: str) -> None:
    logits = np.array([[1000, 0, -1000]], np.float32)
    expected = {"softmax": [[1, 0, 0]], "log_softmax": [[0, -1000, -2000]]}[name]

    found = value_of(lambda: getattr(layers, name)(layers.data("x", (3,))), {"x": logits})

    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize(("name", "attrs", "function"), [*ANYWHERE, ABOVE_ZERO[0]])
def test_function_of_ragged_rows_stays_ragged(
    name: str, attrs: dict[str, Any], function: Any
) -> None:
    def build() -> Var:
        elements = layers.reshape(layers.data("x", ragged=True), (-1, 1))
        return getattr(layers, name)(elements, **attrs)  # type: ignore[no-any-return]

    found = value_of(build, {"x": LISTS})

    assert isinstance(found, Ragged)
    np.testing.assert_array_equal(found.offsets, LISTS.offsets)
    np.testing.assert_allclose(found.values, function(LISTS.values[:, None]), rtol=1e-5, atol=1e-6)


def test_gradient_flows_through_functions_of_ragged_rows() -> None:
    check_gradients(lambda: total(layers.gelu(trained_lists("x", 2))), {"x": LISTS})


@pytest.mark.parametrize(
    "act", ["leaky_relu", "elu", "gelu", "softplus", "swish", "relu6", "log_softmax", "square"]
)
def test_layers_take_every_function_by_name(act: str) -> None:
    found, expected = (
        value_of(build, {"x": X})
        for build in (
            lambda: layers.scale(layers.data("x", (3,)), 2.0, act=act),
            lambda: getattr(layers, act)(layers.scale(layers.data("x", (3,)), 2.0)),
        )
    )

    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["relu", "sigmoid", "softplus", "gelu", "swish", "tanh"])
def test_function_of_nan_is_nan(name: str) -> None:
    found = value_of(
        lambda: getattr(layers, name)(layers.data("x", (1,))), {"x": np.full((1, 1), np.nan, "f4")}
    )

    assert np.isnan(found).all()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda x: layers.clip(x, 0, 5), [[0], [5]]),
        (lambda x: layers.scale(x, 2, 1), [[-5], [2**61 + 3]]),
    ],
)
def test_ids_are_clipped_and_moved_exactly(
    build: Callable[[Var], Var], expected: list[list[int]]
) -> None:
    ids = np.array([[-3], [2**60 + 1]])

    found = value_of(lambda: build(layers.data("x", (1,), "int64")), {"x": ids})

    np.testing.assert_array_equal(found, expected)


# --- arithmetic -----------------------------------------------------------------------------------

ARITHMETIC: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
}


@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_is_that_of_numpy(name: str) -> None:
    layer = getattr(layers, f"elementwise_{name}")

    found = value_of(
        lambda: layer(layers.data("x", (3,)), layers.data("y", (3,))), {"x": X, "y": Y}
    )

    np.testing.assert_allclose(found, ARITHMETIC[name](X, Y), rtol=1e-6)


def test_a_rest_has_the_sign_of_the_divisor() -> None:
    with program() as built:
        x, y = layers.data("x", (), "int64"), layers.data("y", (), "int64")
        rest = layers.elementwise_mod(x, y)
    feed = {"x": np.array([7, -7, 7, 6]), "y": np.array([3, 3, -3, 3])}

    assert Executor(built, Scope()).run(feed, [rest])[0].tolist() == [1, 2, -2, 0]


def test_power_of_two_vars() -> None:
    found = value_of(
        lambda: layers.elementwise_pow(layers.data("x", (3,)), layers.data("y", (3,))),
        {"x": POSITIVE, "y": Y},
    )

    np.testing.assert_allclose(found, POSITIVE**Y, rtol=1e-5)


@pytest.mark.parametrize("shapes", [((3,), (3,)), ((3,), (1,)), ((1,), (3,)), ((2, 3), (1, 3))])
@pytest.mark.parametrize("name", [*ARITHMETIC, "pow"])
def test_gradient_of_arithmetic(name: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    def build() -> Var:
        x, y = (layers.exp(trained(n, shape)) for n, shape in zip("xy", shapes, strict=True))
        return total(getattr(layers, f"elementwise_{name}")(x, y))

    feed = {n: RNG.normal(0, 0.7, (4, *shape)) for n, shape in zip("xy", shapes, strict=True)}
    check_gradients(build, feed)


@pytest.mark.parametrize("name", [*ARITHMETIC, "pow"])
def test_gradient_of_arithmetic_on_a_row_for_all_examples(name: str) -> None:
    def build() -> Var:
        x, row = layers.exp(trained("x", (3,))), layers.create_parameter((3,), "row")
        return total(getattr(layers, f"elementwise_{name}")(x, layers.exp(row)))

    check_gradients(build, {"x": Y[:4]})


@pytest.mark.parametrize("name", ARITHMETIC)
def test_gradient_of_arithmetic_on_ragged_rows(name: str) -> None:
    def build() -> Var:
        x = trained_lists("x", 2)
        y = layers.exp(layers.scale(x, 0.5))
        row = layers.exp(layers.create_parameter((2,), "row"))
        layer = getattr(layers, f"elementwise_{name}")
        return total(layer(layer(x, y), row))

    check_gradients(build, {"x": LISTS})


def test_sums_adds_all_its_inputs() -> None:
    found = value_of(
        lambda: layers.sums([layers.data(name, (3,)) for name in "xyz"]), {"x": X, "y": Y, "z": X}
    )

    np.testing.assert_allclose(found, X + Y + X, rtol=1e-6)


def test_lists_of_different_lengths_do_not_add_up() -> None:
    other = Ragged.of([[1.0], [2.0], [3.0]], np.float32)

    with pytest.raises(PsrtError, match="lists of x and of y differ in length"):
        value_of(
            lambda: layers.elementwise_add(
                layers.data("x", ragged=True), layers.data("y", ragged=True)
            ),
            {"x": LISTS, "y": other},
        )


def test_gradient_of_a_part_of_something_larger_reaches_a_function() -> None:
    def build() -> Var:
        x, y = layers.gelu(trained("x", (3,))), layers.tanh(trained("y", (3,)))
        return total(layers.concat([x, y]))

    check_gradients(build, {"x": X[:4], "y": Y[:4]})


def test_gradient_stops_at_a_step_function() -> None:
    with program() as p:
        x = trained("x", (3,))
        loss = layers.reduce_sum(layers.elementwise_mul(x, layers.floor(x)))
        append_backward(p, loss)
    scope = Scope()
    scope.init_parameters(p)
    scope["x_factor"] = np.full(3, 1.5, np.float32)
    executor = Executor(p, scope)

    executor.run({"x": Y})

    expected = (Y * np.floor(Y * np.float32(1.5))).sum(axis=0)
    np.testing.assert_allclose(executor.gradients()["x_factor"], expected, rtol=1e-5)


def _x(dtype: str = "float32", ragged: bool = False) -> Var:
    return layers.data("x", (1,) if ragged else (3,), dtype, ragged)


REFUSALS: dict[str, tuple[Callable[[], object], str]] = {
    "a function of ids": (
        lambda: layers.gelu(_x("int64")),
        r"layers.gelu .*argument x must hold floats, not int64 \(-1, 3\)",
    ),
    "an unknown activation": (
        lambda: layers.scale(_x(), act="gulu"),
        "argument act is 'gulu', no activation. Did you mean gelu",
    ),
    "softmax over the examples": (
        lambda: layers.softmax(_x(), axis=0),
        r"argument axis 0 counts the examples of argument x, float32 \(-1, 3\)",
    ),
    "softmax over no dimension": (
        lambda: layers.softmax(_x(), axis=2),
        r"argument axis 2 is not a dimension of argument x, float32 \(-1, 3\)",
    ),
    "an empty range": (lambda: layers.clip(_x(), 1.0, 0.0), "argument min 1.0 is above argument"),
    "half an id": (
        lambda: layers.scale(_x("int64"), 0.5),
        r"argument scale 0.5 does not fit argument x, int64 \(-1, 3\)",
    ),
    "examples and elements": (
        lambda: layers.elementwise_add(
            layers.reshape(_x(ragged=True), (-1, 1)), layers.data("y", (1,))
        ),
        r"argument y is float32 \(-1, 1\) and argument x is ragged float32 \(-1, 1\)",
    ),
    "elements in the second dimension": (
        lambda: layers.elementwise_add(_x(ragged=True), layers.create_parameter((4, 1))),
        r"argument y is float32 \(4, 1\), argument x is ragged float32 \(-1,\)",
    ),
    "floats and ids": (
        lambda: layers.elementwise_mul(_x(), layers.data("y", (3,), "int64")),
        r"argument y is int64 \(-1, 3\), argument x is float32 \(-1, 3\)",
    ),
    "sums of different shapes": (
        lambda: layers.sums([_x(), layers.data("y", (2,))]),
        r"argument x has parts of different types: float32 \(-1, 3\) and float32 \(-1, 2\)",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_illegal_call_is_refused(case: str) -> None:
    call, complaint = REFUSALS[case]

    with program(), pytest.raises(ProgramError, match=complaint):
        call()
