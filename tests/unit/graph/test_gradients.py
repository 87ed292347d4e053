"""Every layer's gradient against central finite differences (tests/support/gradcheck.py)."""

from __future__ import annotations

import numpy as np
import pytest

from psrt import Ragged, layers
from psrt.core.types import Array
from psrt.graph.program import Var
from tests.support.gradcheck import check_gradients

RNG = np.random.default_rng(3)
DENSE: Array = RNG.normal(size=(4, 3))
LABELS: Array = np.array([[1.0], [0.0], [1.0], [0.3]])
CLASSES: Array = np.array([[0], [2], [1], [2]])
IDS: Array = np.array([[1, 4], [4, 4], [0, 2], [5, 1]])
LISTS = Ragged.of([[1, 4, 4], [], [2], [5, 0]])


def weighted(x: Var) -> Var:
    """A scalar in which every element of `x` counts differently: errors cannot cancel."""
    return layers.reduce_sum(layers.fc(x, 1, param="last", bias=False))


def features(size: int = 3) -> Var:
    """A batch of trained features."""
    return layers.fc(layers.data("x", (3,)), size, param="first")


@pytest.mark.parametrize("act", [None, "relu", "sigmoid", "tanh", "softmax"])
@pytest.mark.parametrize("bias", [None, False])
def test_gradient_of_fc(act: str | None, bias: None) -> None:
    def build() -> Var:
        return weighted(layers.fc(features(), 4, act=act, bias=bias))

    check_gradients(build, {"x": DENSE})


def test_gradient_of_fc_over_several_inputs() -> None:
    def build() -> Var:
        x = features()
        return weighted(layers.fc([x, layers.tanh(x)], 4, act="relu"))

    check_gradients(build, {"x": DENSE})


@pytest.mark.parametrize("name", ["relu", "sigmoid", "tanh", "softmax"])
def test_gradient_of_activation(name: str) -> None:
    def build() -> Var:
        return weighted(getattr(layers, name)(features()))

    check_gradients(build, {"x": DENSE})


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_gradient_of_arithmetic_on_equal_shapes(name: str) -> None:
    def build() -> Var:
        x = features()
        y = layers.sigmoid(layers.fc(x, 3))
        return weighted(getattr(layers, f"elementwise_{name}")(x, y))

    check_gradients(build, {"x": DENSE})


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_gradient_of_arithmetic_broadcasts_a_column(name: str) -> None:
    def build() -> Var:
        x = features()
        column = layers.sigmoid(layers.fc(x, 1))
        return weighted(getattr(layers, f"elementwise_{name}")(x, column))

    check_gradients(build, {"x": DENSE})


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_gradient_of_arithmetic_aligned_at_an_axis(name: str) -> None:
    def build() -> Var:
        table = layers.embedding(layers.data("ids", (2,), "int64"), (6, 3))
        by_id = layers.sigmoid(features(2))
        return weighted(getattr(layers, f"elementwise_{name}")(table, by_id, axis=0))

    check_gradients(build, {"x": DENSE, "ids": IDS})


def test_gradient_of_a_var_used_twice_by_one_op_is_the_sum() -> None:
    def build() -> Var:
        x = features()
        return weighted(layers.elementwise_mul(x, x))

    check_gradients(build, {"x": DENSE})


def test_gradient_of_concat_and_reshape() -> None:
    def build() -> Var:
        x = features()
        wide = layers.concat([x, layers.tanh(x), layers.data("more", (2,))])
        return weighted(layers.relu(layers.reshape(wide, (-1, 2, 4))))

    check_gradients(build, {"x": DENSE, "more": DENSE[:, :2]})


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("padding", [None, 4])
def test_gradient_of_embedding(is_sparse: bool, padding: int | None) -> None:
    def build() -> Var:
        ids = layers.data("ids", (2,), "int64")
        return weighted(layers.embedding(ids, (6, 3), is_sparse, padding_idx=padding))

    check_gradients(build, {"ids": IDS})


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("pool", ["sum", "average", "max"])
def test_gradient_of_sequence_pool(pool: str, is_sparse: bool) -> None:
    def build() -> Var:
        ids = layers.data("lists", dtype="int64", ragged=True)
        rows = layers.tanh(layers.embedding(ids, (6, 3), is_sparse))
        return weighted(layers.sequence_pool(rows, pool))

    check_gradients(build, {"lists": LISTS})


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("padding", [None, 4])
@pytest.mark.parametrize("pool", ["sum", "average", "max"])
def test_gradient_of_slot_embeddings(pool: str, padding: int | None, is_sparse: bool) -> None:
    def build() -> Var:
        slots = [
            layers.data("lists", dtype="int64", ragged=True),
            layers.data("ids", (2,), "int64"),
        ]
        return weighted(
            layers.slot_embeddings(slots, (6, 3), pool, is_sparse, False, padding_idx=padding)
        )

    check_gradients(build, {"ids": IDS, "lists": LISTS})


def test_gradient_of_slots_with_one_id_each() -> None:
    def build() -> Var:
        slots = [layers.data(name, (1,), "int64") for name in ("a", "b")]
        return weighted(layers.slot_embeddings(slots, (6, 3), is_distributed=False))

    check_gradients(build, {"a": IDS[:, :1], "b": IDS[:, 1:]})


@pytest.mark.parametrize("is_sparse", [False, True])
def test_gradients_of_several_lookups_of_one_table_add_up(is_sparse: bool) -> None:
    def build() -> Var:
        ids = layers.data("ids", (2,), "int64")
        lists = layers.data("lists", dtype="int64", ragged=True)
        one = layers.embedding(ids, (6, 3), is_sparse, param="shared")
        other = layers.embedding(lists, (6, 3), is_sparse, param="shared")
        slots = layers.slot_embeddings([ids], (6, 3), "sum", is_sparse, False, param="shared")
        return weighted(
            layers.concat([layers.flatten(one), layers.sequence_pool(other), layers.tanh(slots)])
        )

    check_gradients(build, {"ids": IDS, "lists": LISTS})


def test_gradient_of_a_dense_table_that_is_also_added_as_a_whole() -> None:
    def build() -> Var:
        ids = layers.data("ids", (2,), "int64")
        rows = layers.embedding(ids, (3, 3), param="both")
        whole = layers.fc(layers.data("x", (3,)), 3, param="both")
        return weighted(layers.concat([layers.flatten(rows), whole]))

    check_gradients(build, {"ids": IDS % 3, "x": DENSE})


def test_gradient_of_sigmoid_cross_entropy() -> None:
    def build() -> Var:
        logit, label = layers.fc(layers.data("x", (3,)), 1), layers.data("label")
        return layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, label))

    check_gradients(build, {"x": DENSE, "label": LABELS}, spread=3.0)


def test_gradient_of_cross_entropy_over_softmax() -> None:
    def build() -> Var:
        probabilities = layers.fc(layers.data("x", (3,)), 3, act="softmax")
        return layers.mean(layers.cross_entropy(probabilities, layers.data("k", (1,), "int64")))

    check_gradients(build, {"x": DENSE, "k": CLASSES})


def test_gradient_of_softmax_with_cross_entropy() -> None:
    def build() -> Var:
        label = layers.data("k", (1,), "int64")
        return layers.mean(layers.softmax_with_cross_entropy(features(), label))

    check_gradients(build, {"x": DENSE, "k": CLASSES})


def test_gradient_of_square_error_reaches_both_sides() -> None:
    def build() -> Var:
        x = features(1)
        return layers.mean(layers.square_error_cost(x, layers.tanh(x)))

    check_gradients(build, {"x": DENSE})


@pytest.mark.parametrize(("dim", "keep"), [(None, False), (1, False), (1, True), (0, False)])
def test_gradient_of_reduce_sum(dim: int | None, keep: bool) -> None:
    def build() -> Var:
        total = layers.reduce_sum(layers.tanh(features()), dim, keep)
        return layers.mean(layers.elementwise_mul(total, total))

    check_gradients(build, {"x": DENSE})
