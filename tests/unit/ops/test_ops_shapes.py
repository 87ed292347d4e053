"""Layers that rearrange and make values: against numpy and finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from psrt import Executor, Ragged, Scope, layers, optimizer, program
from psrt.core.errors import ProgramError, PsrtError
from psrt.core.types import Array
from psrt.graph.program import Var
from tests.support.forward import total, trained, trained_lists, value_of, values_of
from tests.support.gradcheck import check_gradients

RNG = np.random.default_rng(9)
X: Array = RNG.normal(size=(4, 3, 2)).astype(np.float32)
Y: Array = RNG.normal(size=(4, 3, 2)).astype(np.float32)
LISTS = Ragged.of([[1.0, 2.0], [], [-3.0]], np.float32)
IDS = np.array([[2], [0], [2], [4]])


def position(value: int) -> Var:
    """A position that is computed in a step."""
    return layers.scale(layers.fill_constant([1], "int64", value - 1), 1.0, 1.0)


Case = tuple[Callable[[Var], Var], Callable[[Array], Array]]
CASES: dict[str, Case] = {
    "reshape": (lambda x: layers.reshape(x, (0, -1)), lambda x: x.reshape(4, 6)),
    "reshape that keeps a size": (
        lambda x: layers.reshape(x, (-1, 0, 1, 2)),
        lambda x: x.reshape(4, 3, 1, 2),
    ),
    "reshape that merges examples": (
        lambda x: layers.reshape(x, (-1, 2)),
        lambda x: x.reshape(12, 2),
    ),
    "flatten": (lambda x: layers.flatten(x), lambda x: x.reshape(4, 6)),
    "unsqueeze": (lambda x: layers.unsqueeze(x, [1, -1]), lambda x: x.reshape(4, 1, 3, 2, 1)),
    "squeeze": (
        lambda x: layers.squeeze(layers.unsqueeze(x, [1, 3]), [-2]),
        lambda x: x.reshape(4, 1, 3, 2),
    ),
    "squeeze of all": (lambda x: layers.squeeze(layers.unsqueeze(x, [1, 4])), lambda x: x),
    "transpose": (lambda x: layers.transpose(x, [0, 2, 1]), lambda x: x.transpose(0, 2, 1)),
    "slice": (lambda x: layers.slice(x, [1], [1], [3]), lambda x: x[:, 1:3]),
    "slice from the end": (
        lambda x: layers.slice(x, [1, 2], [-2, 0], [100, -1]),
        lambda x: x[:, -2:, :-1],
    ),
    "slice between vars": (
        lambda x: layers.slice(x, [1, 2], [position(1), 0], [position(9), position(-1)]),
        lambda x: x[:, 1:, :-1],
    ),
    "slice from a var to the end": (
        lambda x: layers.slice(x, [2, 1], [position(-1), 1], [2, 2]),
        lambda x: x[:, 1:2, -1:],
    ),
    "slice of nothing": (
        lambda x: layers.slice(x, [1], [position(3)], [position(1)]),
        lambda x: x[:, 3:1],
    ),
    "slice of examples": (lambda x: layers.slice(x, [0, 1], [1, 0], [9, 1]), lambda x: x[1:, :1]),
    "a part of a split": (lambda x: layers.split(x, [1, -1], dim=1)[1], lambda x: x[:, 1:]),
    "an unstacked part": (lambda x: layers.unstack(x, 1)[2], lambda x: x[:, 2]),
    "expand": (lambda x: layers.expand(x, [1, 2, 3]), lambda x: np.tile(x, (1, 2, 3))),
    "assign": (lambda x: layers.assign(x), lambda x: x),
    "concat": (
        lambda x: layers.concat([x, layers.square(x)], axis=-1),
        lambda x: np.concatenate([x, x * x], axis=2),
    ),
    "stack": (
        lambda x: layers.stack([x, layers.square(x)], axis=2),
        lambda x: np.stack([x, x * x], axis=2),
    ),
    "stack at the end": (
        lambda x: layers.stack([x, layers.square(x)], axis=-1),
        lambda x: np.stack([x, x * x], axis=-1),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_layer_rearranges_as_numpy_does(case: str) -> None:
    layer, function = CASES[case]

    found = value_of(lambda: layer(layers.data("x", (3, 2))), {"x": X})

    np.testing.assert_array_equal(found, function(X))


@pytest.mark.parametrize("case", CASES)
def test_gradient_of_rearranging(case: str) -> None:
    check_gradients(lambda: total(CASES[case][0](trained("x", (3, 2)))), {"x": X})


PARAMETERS: dict[str, Case] = {
    "transpose": (lambda w: layers.transpose(w, [1, 0]), lambda w: w.T),
    "reshape": (lambda w: layers.reshape(w, (3, -1)), lambda w: w.reshape(3, 4)),
    "slice": (lambda w: layers.slice(w, [0], [1], [3]), lambda w: w[1:3]),
    "concat": (lambda w: layers.concat([w, w], axis=0), lambda w: np.concatenate([w, w])),
    "expand": (lambda w: layers.expand(w, [2, 1]), lambda w: np.tile(w, (2, 1))),
    "stack": (lambda w: layers.stack([w, w], axis=0), lambda w: np.stack([w, w])),
    "a split": (lambda w: layers.split(w, 2, dim=0)[1], lambda w: w[2:]),
    "flatten": (lambda w: layers.flatten(w, axis=0), lambda w: w.reshape(1, 12)),
}


@pytest.mark.parametrize("case", PARAMETERS)
def test_parameters_are_rearranged_along_any_dimension(case: str) -> None:
    layer, function = PARAMETERS[case]
    w = RNG.normal(size=(4, 3)).astype(np.float32)

    def build() -> Var:
        layers.data("x", (3, 2))
        return layer(layers.create_parameter((4, 3), "w"))

    found = value_of(build, {"x": X}, {"w": w})

    np.testing.assert_array_equal(found, function(w))
    check_gradients(lambda: layers.reduce_sum(layers.square(build())), {"x": X})


def test_split_into_parts() -> None:
    parts = values_of(lambda: layers.split(layers.data("x", (3, 2)), 3, dim=1), {"x": X})
    sections = values_of(lambda: layers.split(layers.data("x", (3, 2)), [-1, 1], dim=1), {"x": X})

    for found, expected in zip(parts, np.split(X, 3, axis=1), strict=True):
        np.testing.assert_array_equal(found, expected)
    for found, expected in zip(sections, np.split(X, [2], axis=1), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_gradients_of_all_parts_of_a_split_add_up() -> None:
    def build() -> Var:
        a, b = layers.split(trained("x", (3, 2)), [1, 2], dim=1)
        return total(layers.elementwise_mul(layers.sigmoid(b), a))

    check_gradients(build, {"x": X})


def test_ids_are_joined_without_loss() -> None:
    big = IDS + 2**60

    found = value_of(
        lambda: layers.concat([layers.data(n, (1,), "int64") for n in "ab"]), {"a": big, "b": IDS}
    )

    np.testing.assert_array_equal(found, np.concatenate([big, IDS], axis=1))


@pytest.mark.parametrize("case", ["concat", "slice", "expand", "transpose", "stack", "squeeze"])
def test_ragged_rows_are_rearranged_and_stay_ragged(case: str) -> None:
    layer, function = CASES[case]

    def build() -> Var:
        return layer(layers.reshape(trained_lists("x", 6), (-1, 3, 2)))

    found = value_of(build, {"x": LISTS}, {"x_row": X[:1].reshape(1, 6)})

    assert isinstance(found, Ragged)
    np.testing.assert_array_equal(found.offsets, LISTS.offsets)
    rows = LISTS.values[:, None, None] * X[:1]
    expected = np.stack([function(np.stack([row] * 4))[0] for row in rows])
    np.testing.assert_allclose(found.values, expected, rtol=1e-6)
    check_gradients(lambda: total(build()), {"x": LISTS})


def test_ragged_scalars_become_rows_of_one_and_back() -> None:
    def build() -> Var:
        rows = layers.reshape(layers.data("x", ragged=True), (-1, 1))
        return layers.reshape(layers.scale(rows, 2.0), (-1,))

    found = value_of(build, {"x": LISTS})

    assert isinstance(found, Ragged)
    np.testing.assert_array_equal(found.values, 2 * LISTS.values)


# --- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("int64", [[1], [-1]]), ("float32", [[1.7], [-1.7]]), ("float64", [[1.7], [-1.7]])],
)
def test_cast(dtype: str, expected: list[list[float]]) -> None:
    x = np.array([[1.7], [-1.7]], np.float32)

    found = value_of(lambda: layers.cast(layers.data("x"), dtype), {"x": x})

    assert found.dtype == dtype  # type: ignore[union-attr]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_gradient_flows_through_casts_of_floats_and_stops_at_integers() -> None:
    def build() -> Var:
        x = trained("x", (3, 2))
        whole = layers.cast(layers.cast(x, "int64"), "float32")
        return total(layers.elementwise_add(layers.cast(x, "float32"), layers.scale(whole, 0.5)))

    check_gradients(build, {"x": X})


MADE: dict[str, tuple[Callable[[Var], Var], Any]] = {
    "zeros": (lambda x: layers.zeros_like(x), np.zeros((4, 3, 2), np.float32)),
    "ones": (lambda x: layers.ones_like(x), np.ones((4, 3, 2), np.float32)),
    "a constant": (
        lambda x: layers.fill_constant([2, 3], "float32", 0.5),
        np.full((2, 3), 0.5, np.float32),
    ),
    "integers": (lambda x: layers.fill_constant([3], "int64", 7), np.full(3, 7)),
    "a constant for each example": (
        lambda x: layers.fill_constant_batch_size_like(x, [-1, 5], "int64", 3),
        np.full((4, 5), 3),
    ),
}


@pytest.mark.parametrize("case", MADE)
def test_constants(case: str) -> None:
    layer, expected = MADE[case]

    found = value_of(lambda: layer(layers.data("x", (3, 2))), {"x": X})

    assert found.dtype == expected.dtype  # type: ignore[union-attr]
    np.testing.assert_array_equal(found, expected)


def test_one_hot() -> None:
    found = value_of(lambda: layers.one_hot(layers.data("ids", (1,), "int64"), 5), {"ids": IDS})

    np.testing.assert_array_equal(found, np.eye(5, dtype=np.float32)[IDS[:, 0]])


def test_one_hot_of_ragged_ids_and_of_several() -> None:
    lists = Ragged.of([[1, 0], [2]])

    ragged, several = values_of(
        lambda: [
            layers.one_hot(layers.data("lists", dtype="int64", ragged=True), 3),
            layers.one_hot(layers.data("ids", (2,), "int64"), 3),
        ],
        {"lists": lists, "ids": np.array([[1, 0], [2, 2]])},
    )

    assert isinstance(ragged, Ragged)
    np.testing.assert_array_equal(ragged.values, np.eye(3)[[1, 0, 2]])
    np.testing.assert_array_equal(several, np.eye(3)[[[1, 0], [2, 2]]])


def test_gather_takes_rows_of_a_parameter() -> None:
    w = RNG.normal(size=(5, 2, 3)).astype(np.float32)

    def build() -> Var:
        index = layers.data("ids", (1,), "int64")
        return layers.gather(layers.create_parameter((5, 2, 3), "w"), index)

    found = value_of(build, {"ids": IDS}, {"w": w})

    np.testing.assert_array_equal(found, w[IDS[:, 0]])
    check_gradients(lambda: total(build()), {"ids": IDS})


POSITIONS = np.array([[[0, 1], [2, 0]], [[1, 2], [1, 2]], [[2, 1], [0, 0]], [[3, 1], [3, 0]]])


def test_parts_are_gathered_by_positions() -> None:
    def parts_of(x: Var) -> Var:
        return layers.gather_nd(x, layers.data("index", (2, 2), "int64"))

    feed = {"x": X, "index": POSITIONS}
    found = value_of(lambda: parts_of(layers.data("x", (3, 2))), feed)

    np.testing.assert_array_equal(found, X[POSITIONS[..., 0], POSITIONS[..., 1]])
    check_gradients(lambda: total(parts_of(trained("x", (3, 2)))), feed)


def test_rows_are_put_into_groups() -> None:
    def grouped(x: Var) -> Var:
        rows = layers.square(layers.reshape(x, (-1, 2)))
        return layers.group_rows(rows, layers.data("like", (1,)))

    feed = {"x": X, "like": np.zeros((4, 1), np.float32)}
    found = value_of(lambda: grouped(layers.data("x", (3, 2))), feed)

    np.testing.assert_allclose(found, np.square(X), rtol=1e-6)
    check_gradients(lambda: layers.reduce_sum(grouped(trained("x", (3, 2)))), feed)


def test_rows_that_make_no_equal_groups_are_refused() -> None:
    def build() -> Var:
        rows = layers.reshape(layers.data("x", (3, 2)), (-1, 2))
        halves = layers.slice(layers.data("like", (1,)), [0], [1], [99])
        return layers.group_rows(layers.slice(rows, [0], [0], [4]), halves)

    with pytest.raises(PsrtError, match="4 rows are no 3 groups of equal sizes"):
        value_of(build, {"x": X, "like": np.zeros((4, 1), np.float32)})


def test_positions_outside_are_refused() -> None:
    feed = {"x": X, "index": POSITIONS + 1}

    with pytest.raises(PsrtError, match=r"index holds \[2, 3\], which is no position in \(4, 3\)"):
        value_of(
            lambda: layers.gather_nd(
                layers.data("x", (3, 2)), layers.data("index", (2, 2), "int64")
            ),
            feed,
        )


def test_a_constant_has_the_numbers_it_is_given() -> None:
    found = value_of(lambda: layers.constant([1, 2, 3, 4], (2, 2), "int64"), {})

    np.testing.assert_array_equal(found, [[1, 2], [3, 4]])
    assert found.dtype == np.int64


@pytest.mark.parametrize(
    ("build", "name"),
    [
        (lambda ids: layers.one_hot(ids, 4), "input"),
        (lambda ids: layers.gather(layers.create_parameter((4, 2)), ids), "index"),
    ],
)
def test_ids_beyond_the_end_are_refused(build: Callable[[Var], Var], name: str) -> None:
    with pytest.raises(PsrtError, match=f"Argument {name} holds 4, which is not one of 0 to 3"):
        value_of(lambda: build(layers.data("ids", (1,), "int64")), {"ids": IDS})


# --- refusals -------------------------------------------------------------------------------------


def _x(name: str = "x") -> Var:
    return layers.data(name, (3, 2))


def _ragged() -> Var:
    return layers.reshape(layers.data("lists", ragged=True), (-1, 1))


REFUSALS: dict[str, tuple[Callable[[], object], str]] = {
    "examples moved": (
        lambda: layers.transpose(_x(), [1, 0, 2]),
        r"layers.transpose .*perm \(1, 0, 2\) moves dimension 0.* float32 \(-1, 3, 2\)",
    ),
    "a dimension twice": (
        lambda: layers.transpose(_x(), [0, 1, 1]),
        r"argument perm \(0, 1, 1\) does not order the dimensions.*float32 \(-1, 3, 2\)",
    ),
    "examples cut off": (
        lambda: layers.slice(_x(), [0], [0], [-1]),
        r"argument input is float32 \(-1, 3, 2\), of no known size at axis 0",
    ),
    "an empty slice": (
        lambda: layers.slice(_x(), [1], [2], [2]),
        r"starts 2 and ends 2 leave nothing of float32 \(-1, 3, 2\)",
    ),
    "a split with a rest": (
        lambda: layers.split(_x(), 2, dim=1),
        r"num_or_sections 2 does not cut dimension 1 .* of shape \(-1, 3, 2\)",
    ),
    "a split into other sizes": (
        lambda: layers.split(_x(), [1, 1], dim=1),
        r"num_or_sections \[1, 1\] does not cut dimension 1",
    ),
    "elements merged": (
        lambda: layers.reshape(layers.reshape(_ragged(), (-1, 1, 1)), (-1, 2)),
        r"argument shape \(-1, 2\) does not fit argument x of shape \(-1, 1, 1\)",
    ),
    "a parameter of another size": (
        lambda: layers.reshape(layers.create_parameter((4, 3)), (5, 2)),
        r"argument shape \(5, 2\) does not fit argument x of shape \(4, 3\)",
    ),
    "a dimension that is not 1": (
        lambda: layers.squeeze(_x(), [1]),
        r"argument axes has 1, which is not of size 1 in float32 \(-1, 3, 2\)",
    ),
    "a dimension far behind": (
        lambda: layers.unsqueeze(_x(), [5]),
        r"argument axes has 5, beyond the dimensions of float32 \(-1, 3, 2\)",
    ),
    "examples repeated": (
        lambda: layers.expand(_x(), [2, 1, 1]),
        r"argument expand_times \(2, 1, 1\) would repeat the examples .*float32 \(-1, 3, 2\)",
    ),
    "too few repetitions": (
        lambda: layers.expand(_x(), [1, 2]),
        r"argument expand_times \(1, 2\) does not fit argument x, float32 \(-1, 3, 2\)",
    ),
    "a stack of two shapes": (
        lambda: layers.stack([_x(), layers.data("y", (2,))]),
        r"argument x has parts of different types: float32 \(-1, 3, 2\) and float32 \(-1, 2\)",
    ),
    "elements beside examples": (
        lambda: layers.concat([_ragged(), layers.data("y", (1,))]),
        r"argument input has ragged float32 \(-1, 1\) and float32 \(-1, 1\), which differ",
    ),
    "a dtype that psrt does not have": (
        lambda: layers.cast(_x(), "float16"),
        "argument dtype is 'float16', psrt has float32, float64, int64",
    ),
    "a constant of no size": (
        lambda: layers.fill_constant([-1, 2], "float32", 0.0),
        r"argument shape \(-1, 2\) has an unknown dimension",
    ),
    "one-hot floats": (
        lambda: layers.one_hot(_x(), 3),
        r"argument input must hold int64 ids, not float32 \(-1, 3, 2\)",
    ),
    "rows of a batch": (
        lambda: layers.gather(_x(), layers.data("ids", (1,), "int64")),
        r"argument input is float32 \(-1, 3, 2\), which is not one value for the whole batch",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_illegal_call_is_refused(case: str) -> None:
    call, complaint = REFUSALS[case]

    with program(), pytest.raises(ProgramError, match=complaint):
        call()


@pytest.mark.parametrize("through", ["matmul", "fc"])
def test_parameters_that_are_concatenated_get_their_gradients(through: str) -> None:
    with program(seed=3) as made:
        x, y = layers.data("x", (5,)), layers.data("y", (1,))
        parts = [layers.create_parameter((5, 3)), layers.create_parameter((5, 4))]
        whole = layers.concat(parts, axis=1)
        whole = layers.fc(whole, 6) if through == "fc" else whole
        hidden = layers.fc(layers.matmul(x, whole), 1)
        loss = layers.mean(layers.square_error_cost(hidden, y))
        optimizer.Sgd(0.1).minimize(loss)
    gradients = []
    for dtype in ("float32", "float64"):
        scope = Scope()
        scope.init_parameters(made, dtype)
        executor = Executor(made, scope, dtype=dtype)
        for step in range(4):
            values = np.random.default_rng(step).standard_normal((8, 5)).astype(dtype)
            executor.run({"x": values, "y": np.ones((8, 1), dtype)})
        gradients.append({name: value.copy() for name, value in executor.gradients().items()})

    for name, value in gradients[1].items():
        np.testing.assert_allclose(gradients[0][name], value, rtol=1e-4, atol=1e-5, err_msg=name)
