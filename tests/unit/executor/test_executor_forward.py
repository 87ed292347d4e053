"""Every layer's forward pass against plain numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from psrt import Executor, Ragged, Scope, layers, program
from psrt.core.types import Array
from psrt.graph.program import Var

RNG = np.random.default_rng(11)
X = RNG.normal(size=(4, 3)).astype(np.float32)
Y = RNG.normal(size=(4, 3)).astype(np.float32)
COLUMN = RNG.normal(size=(4, 1)).astype(np.float32)
CUBE = RNG.normal(size=(4, 3, 2)).astype(np.float32)
LABEL = np.array([[1], [0], [1], [0.3]], np.float32)
CLASS = np.array([[0], [2], [1], [2]])
IDS = np.array([[1, 4], [4, 4], [0, 2], [5, 1]])
ROWS = [[1, 4, 4], [], [2], [5, 0]]
TABLE = RNG.normal(size=(6, 3)).astype(np.float32)


def compute(
    build: Callable[[], Var],
    feed: Mapping[str, Array | Ragged],
    parameters: Mapping[str, Array] | None = None,
) -> Array | Ragged:
    """The value of the var that `build` returns."""
    with program() as p:
        out = build()
    scope = Scope()
    scope.init_parameters(p)
    for name, value in (parameters or {}).items():
        scope[name] = value.astype(np.float32)
    return Executor(p, scope).run(feed, [out], roles=("forward",))[0]


def x(name: str = "x", size: int = 3) -> Var:
    return layers.data(name, (size,))


def ids() -> Var:
    return layers.data("ids", (2,), "int64")


def lists() -> Var:
    return layers.data("lists", dtype="int64", ragged=True)


def softmax(logits: Array) -> Array:
    powers = np.exp(logits.astype(np.float64))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def pooled(pool: str) -> Array:
    """`TABLE` rows of `ROWS`, pooled example by example."""
    function = {"sum": np.sum, "average": np.mean, "max": np.max}[pool]
    return np.stack([function(TABLE[row], axis=0) if row else np.zeros(3) for row in ROWS])


BINARY = {"x": X, "y": Y}
CASES: dict[str, tuple[Callable[[], Var], Mapping[str, Array], Array]] = {
    "add": (lambda: layers.elementwise_add(x(), x("y")), BINARY, X + Y),
    "sub": (lambda: layers.elementwise_sub(x(), x("y")), BINARY, X - Y),
    "mul": (lambda: layers.elementwise_mul(x(), x("y"), act="tanh"), BINARY, np.tanh(X * Y)),
    "div": (lambda: layers.elementwise_div(x(), x("y")), BINARY, X / Y),
    "add a column": (
        lambda: layers.elementwise_add(x(), x("y", 1)),
        {"x": X, "y": COLUMN},
        X + COLUMN,
    ),
    "add at an axis": (
        lambda: layers.elementwise_add(layers.data("x", (3, 2)), x("y"), axis=0),
        {"x": CUBE, "y": Y},
        CUBE + Y[:, :, None],
    ),
    "relu": (lambda: layers.relu(x()), {"x": X}, np.maximum(X, 0)),
    "sigmoid": (lambda: layers.sigmoid(x()), {"x": X}, 1 / (1 + np.exp(-X))),
    "tanh": (lambda: layers.tanh(x()), {"x": X}, np.tanh(X)),
    "softmax": (lambda: layers.softmax(x()), {"x": X}, softmax(X)),
    "softmax of large logits": (
        lambda: layers.softmax(x()),
        {"x": np.array([[1000, 0, -1000]], np.float32)},
        np.array([[1.0, 0.0, 0.0]]),
    ),
    "concat": (lambda: layers.concat([x(), x("y")]), BINARY, np.concatenate([X, Y], axis=1)),
    "reshape": (
        lambda: layers.reshape(layers.data("x", (3, 2)), (0, 2, -1)),
        {"x": CUBE},
        CUBE.reshape(4, 2, 3),
    ),
    "flatten": (lambda: layers.flatten(layers.data("x", (3, 2))), {"x": CUBE}, CUBE.reshape(4, 6)),
    "mean": (lambda: layers.mean(x()), {"x": X}, X.mean()),
    "sum of all": (lambda: layers.reduce_sum(x()), {"x": X}, X.sum()),
    "sum of rows": (lambda: layers.reduce_sum(x(), dim=-1), {"x": X}, X.sum(axis=1)),
    "sum that keeps dimensions": (
        lambda: layers.reduce_sum(layers.data("x", (3, 2)), dim=[1, 2], keep_dim=True),
        {"x": CUBE},
        CUBE.sum(axis=(1, 2), keepdims=True),
    ),
    "square error": (lambda: layers.square_error_cost(x(), x("y")), BINARY, (X - Y) ** 2),
    "sigmoid cross-entropy": (
        lambda: layers.sigmoid_cross_entropy_with_logits(x("x", 1), x("label", 1)),
        {"x": COLUMN, "label": LABEL},
        -LABEL * np.log(1 / (1 + np.exp(-COLUMN))) - (1 - LABEL) * np.log(1 / (1 + np.exp(COLUMN))),
    ),
    "cross-entropy": (
        lambda: layers.cross_entropy(x(), layers.data("label", (1,), "int64")),
        {"x": softmax(X).astype(np.float32), "label": CLASS},
        -np.log(softmax(X)[np.arange(4), CLASS[:, 0]])[:, None],
    ),
    "softmax with cross-entropy": (
        lambda: layers.softmax_with_cross_entropy(x(), layers.data("label", (1,), "int64")),
        {"x": X, "label": CLASS},
        -np.log(softmax(X)[np.arange(4), CLASS[:, 0]])[:, None],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_layer_computes_what_numpy_does(case: str) -> None:
    build, feed, expected = CASES[case]

    found = compute(build, feed)

    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("act", [None, "relu", "sigmoid", "tanh", "softmax"])
def test_fc_is_a_product_a_bias_and_an_activation(act: str | None) -> None:
    w, b = RNG.normal(size=(3, 5)), RNG.normal(size=5)
    plain = X @ w + b
    expected = {
        None: plain,
        "relu": np.maximum(plain, 0),
        "sigmoid": 1 / (1 + np.exp(-plain)),
        "tanh": np.tanh(plain),
        "softmax": softmax(plain),
    }[act]

    found = compute(lambda: layers.fc(x(), 5, act=act), {"x": X}, {"fc_0.w_0": w, "fc_0.b_0": b})

    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_fc_adds_the_products_of_its_inputs_and_flattens_them() -> None:
    w, v = RNG.normal(size=(3, 2)), RNG.normal(size=(6, 2))

    found = compute(
        lambda: layers.fc([x(), layers.data("cube", (3, 2))], 2, bias=False),
        {"x": X, "cube": CUBE},
        {"fc_0.w_0": w, "fc_0.w_1": v},
    )

    np.testing.assert_allclose(found, X @ w + CUBE.reshape(4, 6) @ v, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_embedding_reads_rows_and_zeros_for_padding(is_sparse: bool) -> None:
    expected = TABLE[IDS] * (IDS != 4)[:, :, None]

    found = compute(
        lambda: layers.embedding(ids(), (6, 3), is_sparse, padding_idx=4, param="t"),
        {"ids": IDS},
        {"t": TABLE},
    )

    np.testing.assert_array_equal(found, expected)


def test_embedding_of_a_ragged_input_stays_ragged() -> None:
    found = compute(
        lambda: layers.embedding(lists(), (6, 3), param="t"),
        {"lists": Ragged.of(ROWS)},
        {"t": TABLE},
    )

    assert isinstance(found, Ragged)
    np.testing.assert_array_equal(found.values, TABLE[[1, 4, 4, 2, 5, 0]])
    np.testing.assert_array_equal(found.offsets, [0, 3, 3, 4, 6])


@pytest.mark.parametrize("pool", ["sum", "average", "max"])
def test_sequence_pool_reduces_each_example_and_an_empty_one_to_zeros(pool: str) -> None:
    found = compute(
        lambda: layers.sequence_pool(layers.embedding(lists(), (6, 3), param="t"), pool),
        {"lists": Ragged.of(ROWS)},
        {"t": TABLE},
    )

    np.testing.assert_allclose(found, pooled(pool), rtol=1e-6)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("pool", ["sum", "average", "max"])
def test_slot_embeddings_are_embedding_pool_and_concat_in_one(pool: str, is_sparse: bool) -> None:
    function = {"sum": np.sum, "average": np.mean, "max": np.max}[pool]

    found = compute(
        lambda: layers.slot_embeddings([lists(), ids()], (6, 3), pool, is_sparse, False, param="t"),
        {"lists": Ragged.of(ROWS), "ids": IDS},
        {"t": TABLE},
    )

    np.testing.assert_allclose(
        found, np.concatenate([pooled(pool), function(TABLE[IDS], axis=1)], axis=1), rtol=1e-6
    )


def test_auc_counts_over_steps_until_the_scope_resets_it() -> None:
    scores = RNG.random((200, 1)).astype(np.float32)
    label = (RNG.random((200, 1)) < scores).astype(np.float32)
    higher = scores[label == 1][:, None] > scores[label == 0][None, :]
    with program() as p:
        out = layers.auc(layers.data("score"), layers.data("label"))
    scope = Scope()
    scope.init_parameters(p)
    executor = Executor(p, scope)

    for part in (slice(0, 50), slice(50, 200)):
        (found,) = executor.run({"score": scores[part], "label": label[part]}, [out])

    assert float(found) == pytest.approx(higher.mean(), abs=1e-3)  # type: ignore[arg-type]
    scope.reset_state(p)
    perfect = {"score": label[:50], "label": label[:50]}
    assert float(executor.run(perfect, [out])[0]) == 1.0  # type: ignore[arg-type]


def test_auc_of_logits_is_that_of_their_probabilities() -> None:
    logits = RNG.normal(size=(60, 1)).astype(np.float32)
    label = (RNG.random((60, 1)) < 0.5).astype(np.float32)

    def both() -> Var:
        score, truth = layers.data("score"), layers.data("label")
        of_logits = layers.auc(score, truth, from_logits=True)
        return layers.elementwise_sub(of_logits, layers.auc(layers.sigmoid(score), truth))

    assert compute(both, {"score": logits, "label": label}) == pytest.approx(0.0)
