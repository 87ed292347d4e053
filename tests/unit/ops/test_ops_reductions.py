"""Sums, extremes, running sums, the best k, norms: against numpy and finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from psrt import Ragged, layers, program
from psrt.core.errors import ProgramError
from psrt.core.types import Array
from psrt.graph.program import Var
from tests.support.forward import total, trained, trained_lists, value_of, values_of
from tests.support.gradcheck import check_gradients

RNG = np.random.default_rng(8)
CUBE: Array = RNG.normal(size=(4, 3, 2)).astype(np.float32)
LISTS = Ragged.of([[1.0, 2.0], [], [-3.0]], np.float32)
REDUCTIONS: dict[str, Callable[..., Array]] = {
    "sum": np.sum,
    "mean": np.mean,
    "max": np.max,
    "min": np.min,
    "prod": np.prod,
}
DIMS: list[Any] = [None, 0, 1, -1, [1, 2], [0, 2]]


def cube() -> Var:
    return layers.data("x", (3, 2))


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduction_is_that_of_numpy(name: str, dim: Any, keep: bool) -> None:
    axes = tuple(dim) if isinstance(dim, list) else dim

    found = value_of(lambda: getattr(layers, f"reduce_{name}")(cube(), dim, keep), {"x": CUBE})

    expected = REDUCTIONS[name](CUBE, axis=axes, keepdims=keep)
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_gradient_of_reduction(name: str, dim: Any, keep: bool) -> None:
    def build() -> Var:
        reduced = getattr(layers, f"reduce_{name}")(trained("x", (3, 2)), dim, keep)
        return layers.reduce_sum(layers.square(reduced))

    check_gradients(build, {"x": CUBE})


def test_gradient_of_a_product_with_zeros() -> None:
    x = CUBE.copy()
    x[0, 0, 0] = x[1, 0, 1] = x[1, 2, 0] = 0

    check_gradients(lambda: total(layers.reduce_prod(trained("x", (3, 2)), [1, 2])), {"x": x})


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduction_of_ragged_rows_keeps_the_elements(name: str) -> None:
    def build() -> Var:
        return getattr(layers, f"reduce_{name}")(trained_lists("x", 3), 1, True)  # type: ignore[no-any-return]

    found = value_of(build, {"x": LISTS}, {"x_row": np.array([[1, 2, 3]])})

    assert isinstance(found, Ragged)
    rows = LISTS.values[:, None] * [1, 2, 3]
    np.testing.assert_allclose(found.values, REDUCTIONS[name](rows, axis=1, keepdims=True))
    check_gradients(lambda: total(build()), {"x": LISTS})


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_elements_of_all_examples_have_one_sum(name: str, keep: bool) -> None:
    def build() -> Var:
        rows = layers.square(trained_lists("x", 3))
        made: Var = getattr(layers, f"reduce_{name}")(rows, None, keep)
        return made

    found = value_of(build, {"x": LISTS}, {"x_row": np.array([[1, 2, 3]])})

    squares = np.square(LISTS.values[:, None] * [1, 2, 3])
    expected = REDUCTIONS[name](squares, keepdims=keep)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert np.shape(found) == np.shape(expected)
    check_gradients(lambda: total(build()), {"x": LISTS})


def test_mean_of_everything() -> None:
    found = value_of(lambda: layers.mean(cube()), {"x": CUBE})

    assert float(found) == pytest.approx(float(CUBE.mean()), rel=1e-5)  # type: ignore[arg-type]
    check_gradients(lambda: layers.mean(layers.square(trained("x", (3, 2)))), {"x": CUBE})


@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize(
    ("exclusive", "reverse", "expected"),
    [
        (False, False, [1, 3, 6]),
        (True, False, [0, 1, 3]),
        (False, True, [6, 5, 3]),
        (True, True, [5, 3, 0]),
    ],
)
def test_cumsum(axis: int, exclusive: bool, reverse: bool, expected: list[float]) -> None:
    row = np.array([[1, 2, 3]], np.float32)

    found = value_of(
        lambda: layers.cumsum(layers.data("x", (3,)), axis, exclusive, reverse), {"x": row}
    )

    np.testing.assert_array_equal(found, [expected])
    check_gradients(
        lambda: total(layers.cumsum(trained("x", (3, 2)), axis, exclusive, reverse)), {"x": CUBE}
    )


@pytest.mark.parametrize("axis", [1, 2, -1])
@pytest.mark.parametrize(("name", "function"), [("argmax", np.argmax), ("argmin", np.argmin)])
def test_position_of_the_extreme(name: str, function: Callable[..., Array], axis: int) -> None:
    x = np.round(CUBE)  # with ties

    found = value_of(lambda: getattr(layers, name)(cube(), axis), {"x": x})

    np.testing.assert_array_equal(found, function(x, axis=axis))
    assert found.dtype == np.int64  # type: ignore[union-attr]


@pytest.mark.parametrize("k", [1, 3, 7])
def test_topk_falls_and_takes_the_first_of_equal_ones(k: int) -> None:
    x = np.round(2 * RNG.normal(size=(20, 7))).astype(np.float32)
    order = np.argsort(-x, axis=1, kind="stable")[:, :k]

    values, indices = values_of(lambda: list(layers.topk(layers.data("x", (7,)), k)), {"x": x})

    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, axis=1))


def test_gradient_of_topk() -> None:
    check_gradients(lambda: total(layers.topk(trained("x", (3, 2)), 1)[0]), {"x": CUBE})


@pytest.mark.parametrize("axis", [1, -1])
def test_l2_normalize(axis: int) -> None:
    lengths = np.sqrt((CUBE**2).sum(axis=axis, keepdims=True) + 0.1)

    found = value_of(lambda: layers.l2_normalize(cube(), axis, epsilon=0.1), {"x": CUBE})

    np.testing.assert_allclose(found, CUBE / lengths, rtol=1e-5)
    check_gradients(
        lambda: total(layers.l2_normalize(trained("x", (3, 2)), axis, 0.1)), {"x": CUBE}
    )


def test_rows_of_zeros_are_normalized_to_zeros() -> None:
    found = value_of(lambda: layers.l2_normalize(cube()), {"x": 0 * CUBE})

    np.testing.assert_array_equal(found, 0 * CUBE)


def _ragged() -> Var:
    return layers.reshape(layers.data("x", ragged=True), (-1, 1))


REFUSALS: dict[str, tuple[Callable[[], object], str]] = {
    "a dimension that is not there": (
        lambda: layers.reduce_mean(cube(), dim=3),
        r"layers.reduce_mean .*argument dim \(3,\) is not within \(-1, 3, 2\)",
    ),
    "elements of all examples": (
        lambda: layers.reduce_max(_ragged()),
        r"argument x is ragged float32 \(-1, 1\), and dim \(0, 1\) would mix elements",
    ),
    "a sum of ids": (
        lambda: layers.reduce_sum(layers.data("x", (3,), "int64")),
        r"argument x must hold floats, not int64 \(-1, 3\)",
    ),
    "running sums over the examples": (
        lambda: layers.cumsum(cube(), axis=0),
        r"argument axis 0 counts the examples of argument x, float32 \(-1, 3, 2\)",
    ),
    "the best example": (
        lambda: layers.argmax(cube(), axis=-3),
        r"argument axis 0 counts the examples of argument x, float32 \(-1, 3, 2\)",
    ),
    "more than there are": (
        lambda: layers.topk(cube(), 3),
        r"argument k 3 does not fit argument input of shape \(-1, 3, 2\)",
    ),
    "norms along no dimension": (
        lambda: layers.l2_normalize(cube(), axis=3),
        r"argument axis 3 is not a dimension of argument x, float32 \(-1, 3, 2\)",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_illegal_call_is_refused(case: str) -> None:
    call, complaint = REFUSALS[case]

    with program(), pytest.raises(ProgramError, match=complaint):
        call()
