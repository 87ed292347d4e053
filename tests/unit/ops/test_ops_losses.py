"""Losses by example and ranking losses: plain numpy, finite differences, what is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from psrt import Executor, Ragged, Scope, layers, program
from psrt.core.errors import DataError, ProgramError
from psrt.core.types import Array
from psrt.graph.program import Var
from tests.support.gradcheck import check_gradients

RNG = np.random.default_rng(5)
X: Array = RNG.normal(size=(4, 3)) * 2
Y: Array = RNG.normal(size=(4, 3)) * 2
COLUMN: Array = RNG.normal(size=(4, 1)) * 2
OTHER: Array = RNG.normal(size=(4, 1)) * 2
BINARY: Array = np.array([[1.0], [0.0], [1.0], [0.0]])
CLASS: Array = np.array([[0], [2], [1], [2]])
SKIPPING: Array = np.array([[0], [-7], [1], [-7]])
SHARES: Array = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.9, 0.05, 0.05]])


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def softmax(x: Array) -> Array:
    powers = np.exp(x)
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


P = sigmoid(COLUMN)
DISTRIBUTION = softmax(X)


def x(name: str = "x", size: int = 3) -> Var:
    return layers.data(name, (size,))


def column(name: str = "x") -> Var:
    return x(name, 1)


def label() -> Var:
    return layers.data("label", (1,), "int64")


def compute(build: Callable[[], Var], feed: Mapping[str, Array]) -> Array:
    with program() as p:
        out = build()
    scope = Scope()
    scope.init_parameters(p)
    narrow = {name: a.astype("f4") if a.dtype == "f8" else a for name, a in feed.items()}
    (found,) = Executor(p, scope).run(narrow, [out], roles=("forward",))
    assert not isinstance(found, Ragged)
    return found


def picked(values: Array) -> Array:
    return values[np.arange(4), CLASS[:, 0]][:, None]


def huber(r: Array, delta: float) -> Array:
    return np.asarray(np.where(np.abs(r) <= delta, r * r / 2, delta * (np.abs(r) - delta / 2)))


def bpr() -> Array:
    others = [[j for j in range(3) if j != k] for k in CLASS[:, 0]]
    gaps = [X[i, CLASS[i, 0]] - X[i, others[i]] for i in range(4)]
    return np.array([[-np.log(sigmoid(gap)).mean()] for gap in gaps])


def in_batch(temperature: float, probability: Array | None = None) -> Array:
    scores = X @ Y.T / temperature
    if probability is not None:
        scores = scores - np.log(probability).T
    return np.asarray(-np.log(np.diag(softmax(scores)))[:, None])


ONE = {"x": X, "y": Y}
SCORES = {"x": COLUMN, "y": OTHER, "label": BINARY}
CASES: dict[str, tuple[Callable[[], Var], Mapping[str, Array], Array]] = {
    "huber": (lambda: layers.huber_loss(x(), x("y"), 0.7), ONE, huber(X - Y, 0.7)),
    "smooth l1": (
        lambda: layers.smooth_l1(x(), x("y"), sigma=1.5),
        ONE,
        1.5**2 * huber(X - Y, 1.5**-2).sum(axis=1, keepdims=True),
    ),
    "hinge": (
        lambda: layers.hinge_loss(column(), column("label")),
        {"x": COLUMN, "label": BINARY},
        np.maximum(0, 1 - COLUMN * (2 * BINARY - 1)),
    ),
    "log": (
        lambda: layers.log_loss(column(), column("label"), epsilon=1e-3),
        {"x": P, "label": BINARY},
        -BINARY * np.log(P + 1e-3) - (1 - BINARY) * np.log(1 - P + 1e-3),
    ),
    "rank": (
        lambda: layers.rank_loss(column("label"), column(), column("y")),
        SCORES,
        np.log1p(np.exp(COLUMN - OTHER)) - BINARY * (COLUMN - OTHER),
    ),
    "margin rank": (
        lambda: layers.margin_rank_loss(column("label"), column(), column("y"), margin=0.2),
        SCORES | {"label": 2 * BINARY - 1},
        np.maximum(0, 0.2 - (2 * BINARY - 1) * (COLUMN - OTHER)),
    ),
    "bpr": (lambda: layers.bpr_loss(x(), label()), {"x": X, "label": CLASS}, bpr()),
    "in-batch softmax": (
        lambda: layers.in_batch_softmax_loss(x(), x("y"), temperature=0.5),
        ONE,
        in_batch(0.5),
    ),
    "in-batch softmax of popular items": (
        lambda: layers.in_batch_softmax_loss(x(), x("y"), item_probability=column("p")),
        ONE | {"p": P},
        in_batch(1.0, P),
    ),
    "cross-entropy of shares": (
        lambda: layers.cross_entropy(x(), x("label"), soft_label=True),
        {"x": DISTRIBUTION, "label": SHARES},
        -(SHARES * np.log(DISTRIBUTION)).sum(axis=1, keepdims=True),
    ),
    "cross-entropy that ignores a label": (
        lambda: layers.cross_entropy(x(), label(), ignore_index=-7),
        {"x": DISTRIBUTION, "label": SKIPPING},
        np.where(SKIPPING == -7, 0, -np.log(picked(DISTRIBUTION))),
    ),
    "softmax with cross-entropy of shares": (
        lambda: layers.softmax_with_cross_entropy(x(), x("label"), soft_label=True),
        {"x": X, "label": 2 * SHARES},
        -(2 * SHARES * np.log(DISTRIBUTION)).sum(axis=1, keepdims=True),
    ),
    "softmax with cross-entropy that ignores a label": (
        lambda: layers.softmax_with_cross_entropy(x(), label(), ignore_index=-7),
        {"x": X, "label": SKIPPING},
        np.where(SKIPPING == -7, 0, -np.log(picked(DISTRIBUTION))),
    ),
    "softmax with cross-entropy of huge logits": (
        lambda: layers.softmax_with_cross_entropy(x(), label()),
        {"x": np.array([[1000.0, 0.0, -1000.0]]), "label": np.array([[2]])},
        np.array([[2000.0]]),
    ),
    "the softmax": (
        lambda: layers.softmax_with_cross_entropy(x(), label(), return_softmax=True)[1],
        {"x": X, "label": CLASS},
        DISTRIBUTION,
    ),
    "sigmoid cross-entropy that ignores and normalizes": (
        lambda: layers.sigmoid_cross_entropy_with_logits(x(), x("y"), -1.0, normalize=True),
        {"x": X, "y": np.where(X > 0, 1.0, np.where(X > -1, -1.0, 0.0))},
        np.where(X > 0, -np.log(sigmoid(X)), -np.log(sigmoid(-X)))
        * ((X > 0) | (X <= -1))
        / ((X > 0) | (X <= -1)).sum(),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_loss_equals_its_formula(case: str) -> None:
    build, feed, expected = CASES[case]

    found = compute(build, feed)

    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def weighted(loss: Var) -> Var:
    """Every example counts differently, so that gradients that are mixed up do not cancel."""
    return layers.reduce_sum(layers.elementwise_mul(loss, column("weight")))


def trained(name: str = "x", size: int = 3) -> Var:
    return layers.fc(layers.data(name, (3,)), size)


GRADIENTS: dict[str, Callable[[], Var]] = {
    "huber": lambda: layers.huber_loss(trained("x", 1), trained("y", 1), 0.7),
    "huber of a trained label": lambda: layers.huber_loss(column("c"), trained("x", 1), 0.7),
    "smooth l1": lambda: layers.smooth_l1(trained(), trained("y"), sigma=1.5),
    "square error": lambda: layers.square_error_cost(trained("x", 1), trained("y", 1)),
    "square error of a trained label": lambda: layers.square_error_cost(
        column("c"), trained("x", 1)
    ),
    "hinge": lambda: layers.hinge_loss(trained("x", 1), column("binary")),
    "log": lambda: layers.log_loss(layers.sigmoid(trained("x", 1)), column("binary"), 1e-3),
    "rank": lambda: layers.rank_loss(column("binary"), trained("x", 1), trained("y", 1)),
    "rank of the right": lambda: layers.rank_loss(column("binary"), column("c"), trained("x", 1)),
    "margin rank": lambda: layers.margin_rank_loss(
        column("binary"), trained("x", 1), trained("y", 1), 0.3
    ),
    "bpr": lambda: layers.bpr_loss(trained(), label()),
    "in-batch softmax": lambda: layers.in_batch_softmax_loss(
        trained(), trained("y"), 0.7, column("p")
    ),
    "in-batch softmax of users": lambda: layers.in_batch_softmax_loss(trained(), x("y")),
    "in-batch softmax of items": lambda: layers.in_batch_softmax_loss(x(), trained("y")),
    "cross-entropy of shares": lambda: layers.cross_entropy(
        layers.softmax(trained()), x("shares"), soft_label=True
    ),
    "cross-entropy that ignores a label": lambda: layers.cross_entropy(
        layers.softmax(trained()), label(), ignore_index=2
    ),
    "softmax with cross-entropy of shares": lambda: layers.softmax_with_cross_entropy(
        trained(), x("shares"), soft_label=True
    ),
    "softmax with cross-entropy that ignores a label": lambda: layers.softmax_with_cross_entropy(
        trained(), label(), ignore_index=2
    ),
    "sigmoid cross-entropy that ignores and normalizes": lambda: (
        layers.sigmoid_cross_entropy_with_logits(trained("x", 1), column("binary"), 0.0, True)
    ),
}
FEED = {
    "x": X,
    "y": Y,
    "c": COLUMN,
    "p": P,
    "weight": OTHER,
    "binary": BINARY,
    "label": CLASS,
    "shares": SHARES,
}


@pytest.mark.parametrize("case", GRADIENTS)
def test_gradient_of_loss(case: str) -> None:
    def build() -> Var:
        return weighted(GRADIENTS[case]())

    with program() as p:
        build()

    check_gradients(build, {var.name: FEED[var.name] for var in p.data_vars()})


@pytest.mark.parametrize(("rows", "classes"), [(1, 2), (3, 7), (5, 8), (2, 9), (4, 33)])
def test_softmax_of_any_width(rows: int, classes: int) -> None:
    logits, labels = RNG.normal(size=(rows, classes)), RNG.integers(0, classes, (rows, 1))

    found = compute(
        lambda: layers.softmax_with_cross_entropy(x(size=classes), label()),
        {"x": logits, "label": labels},
    )

    expected = -np.log(softmax(logits)[np.arange(rows), labels[:, 0]])
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-5)


@pytest.mark.parametrize("layer", ["cross_entropy", "softmax_with_cross_entropy", "bpr_loss"])
@pytest.mark.parametrize("wrong", [-1, 3])
def test_label_that_is_no_class_is_named(layer: str, wrong: int) -> None:
    labels = np.array([[0], [wrong], [1], [2]])

    with pytest.raises(DataError, match=f"Label {wrong} is not one of the classes 0 to 2"):
        compute(lambda: getattr(layers, layer)(x(), label()), {"x": X, "label": labels})


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "huber of other shapes": (
        lambda: layers.huber_loss(x(), x("y", 2), 1.0),
        r"layers.huber_loss.*label is float32 \(-1, 2\), argument input is float32 \(-1, 3\)",
    ),
    "huber without a parabola": (
        lambda: layers.huber_loss(x(), x("y"), 0.0),
        "argument delta is 0.0, not above 0",
    ),
    "smooth l1 of ids": (
        lambda: layers.smooth_l1(label(), x()),
        "layers.smooth_l1.*argument x must hold floats",
    ),
    "smooth l1 of other shapes": (
        lambda: layers.smooth_l1(x(), x("y", 2)),
        r"argument y is float32 \(-1, 2\), argument x is float32 \(-1, 3\)",
    ),
    "hinge of integer labels": (
        lambda: layers.hinge_loss(column(), label()),
        "layers.hinge_loss.*argument label must hold floats",
    ),
    "rank of other shapes": (
        lambda: layers.rank_loss(column("label"), x(), x("y")),
        r"layers.rank_loss.*label is float32 \(-1, 1\), argument left is float32 \(-1, 3\)",
    ),
    "bpr of one class": (lambda: layers.bpr_loss(column(), label()), "nothing to compare"),
    "bpr of float labels": (
        lambda: layers.bpr_loss(x(), column("y")),
        r"layers.bpr_loss.*label must be int64 \(-1, 1\) for input float32 \(-1, 3\)",
    ),
    "shares of other classes": (
        lambda: layers.softmax_with_cross_entropy(x(), x("y", 2), soft_label=True),
        r"label is float32 \(-1, 2\), argument logits is float32 \(-1, 3\)",
    ),
    "shares that are ids": (
        lambda: layers.cross_entropy(x(), label(), soft_label=True),
        "argument label must hold floats",
    ),
    "towers of other widths": (
        lambda: layers.in_batch_softmax_loss(x(), x("y", 2)),
        r"in_batch_softmax_loss.*item is float32 \(-1, 2\), argument user is float32 \(-1, 3\)",
    ),
    "probabilities of other items": (
        lambda: layers.in_batch_softmax_loss(x(), x("y"), item_probability=x("p")),
        r"argument item_probability must be floats \(-1, 1\), not float32 \(-1, 3\)",
    ),
    "a temperature of 0": (
        lambda: layers.in_batch_softmax_loss(x(), x("y"), temperature=0.0),
        "argument temperature is 0.0",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_illegal_call_is_refused(case: str) -> None:
    call, complaint = REFUSED[case]

    with program(), pytest.raises(ProgramError, match=complaint):
        call()


@pytest.mark.parametrize("loss", ["log_loss", "bpr_loss"])
def test_a_loss_of_elements_is_that_of_rows(loss: str) -> None:
    scores, label = (P, BINARY) if loss == "log_loss" else (X, CLASS)
    width, dtype = scores.shape[1], "float32" if loss == "log_loss" else "int64"

    def build(ragged: bool) -> Var:
        seen = layers.data("x", (width,), ragged=ragged)
        right = layers.data("label", (1,), dtype, ragged=ragged)
        if ragged:
            seen = layers.reshape(seen, (-1, width))
            right = layers.reshape(right, (-1, 1))
        made: Var = getattr(layers, loss)(layers.scale(seen, 0.9, 0.05), right)
        return made

    ends = np.array([0, 1, 1, 4])
    narrow = {"x": scores.astype("f4"), "label": label.astype(dtype)}
    lists = {
        name: Ragged(value[:, 0] if value.shape[1] == 1 else value, ends)
        for name, value in narrow.items()
    }
    with program() as p:
        out = build(True)
    scope = Scope()
    scope.init_parameters(p)
    (found,) = Executor(p, scope).run(lists, [out], roles=("forward",))

    assert isinstance(found, Ragged)
    expected = compute(lambda: build(False), narrow)
    np.testing.assert_allclose(found.values.reshape(-1), expected.reshape(-1), rtol=1e-6)
