"""Sampled losses and trees: plain numpy over the drawn ids, finite differences, what is refused.

Gradients are checked for the draws of step 0, which are fed to every run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from psrt import Executor, Program, Scope, layers, optimizer, program
from psrt.core.errors import DataError, ProgramError
from psrt.core.tensors import SelectedRows
from psrt.core.types import I64, Array
from psrt.executor.parallel.parallel import ParallelExecutor
from psrt.executor.program.derived import DerivedIds
from psrt.graph.backward import append_backward
from psrt.graph.builder import Layer
from psrt.graph.program import Role, Var
from tests.support.gradcheck import check_gradients, dense

RNG = np.random.default_rng(17)
CLASSES, WIDTH = 7, 3
X: Array = RNG.normal(size=(5, WIDTH)).astype("f4")
LABEL: Array = np.array([[0], [6], [2], [2], [5]])
FEED = {"x": X, "label": LABEL}
WEIGHTS = (5.0, 1.0, 0.5, 3.0, 0.25, 8.0, 1.0)
W: Array = RNG.normal(size=(CLASSES, WIDTH)).astype("f4")
B: Array = RNG.normal(size=(CLASSES, 1)).astype("f4")

PROBABILITY: dict[str, Array] = {
    "uniform": np.full(CLASSES, 1 / CLASSES),
    "log_uniform": np.log1p(1 / np.arange(1, CLASSES + 1)) / math.log(CLASSES + 1),
    "custom_dist": np.array(WEIGHTS) / sum(WEIGHTS),
}


def x() -> Var:
    return layers.data("x", (WIDTH,))


def label() -> Var:
    return layers.data("label", (1,), "int64")


def of(sampler: str) -> dict[str, Any]:
    return {"sampler": sampler, "custom_dist": WEIGHTS if sampler == "custom_dist" else None}


def nce(sampler: str = "uniform", **more: Any) -> Var:
    return layers.nce(x(), label(), CLASSES, num_neg_samples=4, **of(sampler), **more)


def sgns(sampler: str = "uniform", **more: Any) -> Var:
    return layers.negative_sampling_loss(x(), label(), CLASSES, **of(sampler), **more)


def sampled_softmax(sampler: str = "log_uniform", **more: Any) -> Var:
    return layers.sampled_softmax_with_cross_entropy(
        x(), label(), CLASSES, 4, **of(sampler), **more
    )


def hsigmoid(**more: Any) -> Var:
    return layers.hsigmoid(x(), label(), CLASSES, **more)


def softplus(x: Array) -> Array:
    return np.logaddexp(0, x)


def run(
    build: Callable[[], Var], fetch: list[str], steps: int = 1, feed: dict[str, Array] = FEED
) -> list[Array]:
    """The var that `build` returns and others by name, after `steps` steps."""
    with program() as p:
        out = build()
    executor = Executor(p, scope_of(p))
    for _ in range(steps):
        found = executor.run(feed, [out, *fetch], roles=("forward",))
    return found  # type: ignore[return-value]


def scope_of(p: Program, dtype: str = "f4") -> Scope:
    """Weights `W` and `B`, as many rows as there are."""
    scope = Scope()
    scope.init_parameters(p)
    for name in p.parameters:
        height, width = p.parameters[name].shape
        scope[name] = (B if width == 1 else W)[:height].astype(dtype)
    return scope


def scores_of(ids: I64) -> Array:
    """Scores of each example on classes `ids` (rows, k), or (1, k)."""
    return np.asarray((X[:, None, :] * W[ids]).sum(axis=2) + B[ids, 0])


# --- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampler", PROBABILITY)
def test_nce_tells_the_label_from_what_was_drawn(sampler: str) -> None:
    loss, ids = run(lambda: nce(sampler), ["nce_0.out"])

    logits = scores_of(ids) - np.log(4 * PROBABILITY[sampler][ids])
    expected = softplus(-logits[:, :1]) + softplus(logits[:, 1:]).sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(ids[:, :1], LABEL)
    assert ids.shape == (5, 5)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


def test_negative_sampling_does_not_correct_for_the_sampler() -> None:
    loss, ids = run(lambda: sgns("custom_dist", bias=None), ["negative_sampling_loss_0.out"])

    logits = scores_of(ids)
    expected = softplus(-logits[:, :1]) + softplus(logits[:, 1:]).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


@pytest.mark.parametrize("removes", [True, False])
@pytest.mark.parametrize("sampler", PROBABILITY)
def test_sampled_softmax_is_one_over_label_and_shared_samples(sampler: str, removes: bool) -> None:
    loss, ids = run(
        lambda: sampled_softmax(sampler, remove_accidental_hits=removes),
        ["sampled_softmax_with_cross_entropy_0.out"],
    )

    corrected = [
        scores_of(each) - np.log(4 * PROBABILITY[sampler][each])
        for each in (LABEL, np.broadcast_to(ids, (5, 4)))
    ]
    if removes:
        corrected[1][ids == LABEL] = -np.inf
    powers = np.exp(np.concatenate(corrected, axis=1))
    assert ids.shape == (1, 4)
    np.testing.assert_allclose(loss[:, 0], -np.log(powers[:, 0] / powers.sum(axis=1)), rtol=1e-5)


def test_probabilities_of_all_leaves_of_the_tree_add_up_to_one() -> None:
    probabilities = [
        np.exp(-run(hsigmoid, [], feed={"x": X, "label": np.full((5, 1), c)})[0])
        for c in range(CLASSES)
    ]

    np.testing.assert_allclose(np.sum(probabilities, axis=0), 1.0, rtol=1e-5)


def test_path_of_a_tree_that_is_fed_costs_its_turns() -> None:
    table = np.array([[0, 1, 4], [6, -1, -1], [2, 3, -1], [-1, -1, -1], [5, 0, 1]])
    code = np.array([[0, 1, 1], [1, -1, -1], [0, 0, -1], [-1, -1, -1], [1, 1, 0]])

    (loss, nodes) = run(fed_tree, ["hsigmoid_0.out"], feed=FEED | {"table": table, "code": code})

    costs = softplus(-(2 * code - 1) * scores_of(table)) * (table >= 0)
    np.testing.assert_allclose(loss, costs.sum(axis=1, keepdims=True), rtol=1e-5)
    np.testing.assert_array_equal(nodes[1], [6, 6, 6])  # no row is read that is not on the path


def fed_tree() -> Var:
    table, code = layers.data("table", (3,), "int64"), layers.data("code", (3,), "int64")
    return hsigmoid(path_table=table, path_code=code)


# --- draws ----------------------------------------------------------------------------------------

DRAWING = {"nce_0.out": nce, "sampled_softmax_with_cross_entropy_0.out": sampled_softmax}


@pytest.mark.parametrize("name", DRAWING)
def test_runs_repeat_and_steps_differ(name: str) -> None:
    (_, first), (_, again), (_, second) = (run(DRAWING[name], [name], n) for n in (1, 1, 2))

    np.testing.assert_array_equal(first, again)
    assert (first != second).any()


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("name", DRAWING)
def test_replicas_train_as_one_executor_that_draws_for_the_whole_batch(
    name: str, is_sparse: bool
) -> None:
    with program() as p:
        optimizer.Sgd(0.5).minimize(layers.mean(DRAWING[name](is_sparse=is_sparse)))
    alone, together = scope_of(p, "f8"), scope_of(p, "f8")
    roles: tuple[Role, ...] = ("forward", "backward", "optimize")

    executor = Executor(p, alone, dtype="float64")
    for _ in range(3):
        executor.run(FEED, roles=roles)
    with ParallelExecutor(p, together, 2, dtype="float64") as replicas:
        for _ in range(3):
            replicas.run(FEED, roles=roles)

    for parameter in p.parameters:
        assert (alone[parameter] != scope_of(p, "f8")[parameter]).any()
        np.testing.assert_allclose(together[parameter], alone[parameter], rtol=1e-6)


def test_layers_of_one_program_draw_different_classes() -> None:
    def build() -> Var:
        a, b = x(), label()
        layers.nce(a, b, 1000)
        return layers.nce(a, b, 1000, num_neg_samples=10)

    with program() as p:
        build()
    drawing = [op.attrs["seed"] for op in p.ops if op.type == "draw_negatives"]

    assert len(set(drawing)) == 2


# --- gradients ------------------------------------------------------------------------------------

LOSSES: dict[str, Callable[..., Var]] = {
    "nce": nce,
    "nce without bias": lambda **more: nce("custom_dist", bias=False, **more),
    "negative sampling": sgns,
    "negative sampling with bias": lambda **more: sgns("log_uniform", bias=None, **more),
    "sampled softmax": sampled_softmax,
    "sampled softmax with hits": lambda **more: sampled_softmax(
        "custom_dist", remove_accidental_hits=False, bias=False, **more
    ),
    "hierarchical softmax": hsigmoid,
    "hierarchical softmax without bias": lambda **more: hsigmoid(bias=False, **more),
}


def trained(build: Callable[..., Var]) -> Callable[[], Var]:
    """The loss with a trained input, each example counting differently."""

    def loss() -> Var:
        costs = build(is_sparse=True)
        weight = layers.data("weight", (1,))
        return layers.reduce_sum(layers.elementwise_mul(costs, weight))

    return loss


@pytest.mark.parametrize("case", LOSSES)
def test_gradient_of_the_rows(case: str) -> None:
    build = trained(LOSSES[case])
    with program() as p:
        build()
    feed = FEED | {"weight": RNG.normal(size=(5, 1))}

    check_gradients(build, DerivedIds(p).extend(feed, step=0))


@pytest.mark.parametrize("count", [1, 4])
def test_gradient_of_products_with_rows_of_each_example(count: int) -> None:
    def build() -> Var:
        rows = layers.embedding(layers.data("ids", (count,), "int64"), (CLASSES, WIDTH))
        biases = layers.embedding(layers.data("more", (count,), "int64"), (CLASSES, 1))
        inputs = {"input": layers.fc(x(), WIDTH), "w": rows, "bias": biases}
        return weighted(row_dot(**inputs))

    ids = RNG.integers(0, CLASSES, (5, count))
    check_gradients(build, {"x": X, "ids": ids, "more": ids})


def test_gradient_of_products_with_rows_that_examples_share() -> None:
    def build() -> Var:
        rows, biases = layers.create_parameter((1, 4, WIDTH)), layers.create_parameter((1, 4, 1))
        return weighted(row_dot(input=layers.fc(x(), WIDTH), w=rows, bias=biases))

    check_gradients(build, {"x": X})


@pytest.mark.parametrize("trains", ["x", "w"])
def test_gradient_of_products_of_which_one_side_is_trained(trains: str) -> None:
    def build() -> Var:
        given = layers.data("given", (2, WIDTH))
        if trains == "x":
            return weighted(row_dot(input=layers.fc(x(), WIDTH), w=given))
        return weighted(
            row_dot(input=x(), w=layers.elementwise_mul(given, layers.create_parameter((WIDTH,))))
        )

    check_gradients(build, {"x": X, "given": RNG.normal(size=(5, 2, WIDTH))})


def row_dot(**inputs: Var) -> Var:
    return Layer("row_dot").op("row_dot", dict(inputs))


def weighted(out: Var) -> Var:
    return layers.reduce_sum(layers.fc(out, 1, param="last", bias=False))


# --- sparse tables --------------------------------------------------------------------------------


class _Rows:
    """A stand-in for pservers that hold `W` and `B`."""

    def pull_rows(self, wanted: Mapping[str, I64]) -> dict[str, Array]:
        return {name: (B if name.endswith("b_0") else W)[ids] for name, ids in wanted.items()}


@pytest.mark.parametrize("where", ["is_sparse", "is_distributed"])
@pytest.mark.parametrize(
    "case", ["nce", "negative sampling", "sampled softmax", "hierarchical softmax"]
)
def test_a_sparse_table_learns_what_a_dense_one_does(case: str, where: str) -> None:
    def gradients(**how: bool) -> dict[str, Any]:
        with program() as p:
            append_backward(p, layers.mean(LOSSES[case](**how)))
        executor = Executor(p, scope_of(p) if not how.get("is_distributed") else Scope(), _Rows())
        executor.run(FEED)
        return executor.gradients()

    expected, found = gradients(), gradients(**{where: True})

    assert found.keys() == expected.keys()
    for name, gradient in found.items():
        assert isinstance(gradient, SelectedRows)
        whole = SelectedRows(gradient.ids, gradient.values, len(expected[name]))
        np.testing.assert_allclose(dense(whole), expected[name], rtol=1e-5, atol=1e-7)


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("build", [nce, sampled_softmax, hsigmoid])
@pytest.mark.parametrize("wrong", [-1, CLASSES])
def test_label_that_is_no_class_is_named(build: Callable[..., Var], wrong: int) -> None:
    labels = LABEL.copy()
    labels[3] = wrong

    with pytest.raises(DataError, match=f"Label {wrong} is not one of the classes 0 to 6"):
        run(lambda: build(is_sparse=True), [], feed={"x": X, "label": labels})


@pytest.mark.parametrize(
    ("node", "turn", "complaint"),
    [(7, 1, "Node 7 of a path is not one of the nodes 0 to 6"), (3, 2, "Code 2 of a path")],
)
def test_path_that_is_not_in_the_tree_is_named(node: int, turn: int, complaint: str) -> None:
    table, code = np.zeros((5, 3), np.int64), np.zeros((5, 3), np.int64)
    table[2, 1], code[2, 1] = node, turn

    with pytest.raises(DataError, match=complaint):
        run(fed_tree, [], feed=FEED | {"table": table, "code": code})


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "a cube as input": (
        lambda: layers.nce(layers.data("x", (2, 3)), label(), 9),
        r"layers.nce.*argument input must have 2 dimensions, not float32 \(-1, 2, 3\)",
    ),
    "ids as input": (
        lambda: layers.hsigmoid(layers.data("x", (3,), "int64"), label(), 9),
        r"layers.hsigmoid.*argument input must hold floats, not int64 \(-1, 3\)",
    ),
    "float labels": (
        lambda: layers.nce(x(), layers.data("label"), 9),
        r"argument label must be int64 \(-1, 1\), not float32 \(-1, 1\)",
    ),
    "several labels": (
        lambda: layers.hsigmoid(x(), layers.data("label", (2,), "int64"), 9),
        r"argument label must be int64 \(-1, 1\), not int64 \(-1, 2\)",
    ),
    "one class": (lambda: layers.nce(x(), label(), 1), "num_total_classes is 1"),
    "a tree of one class": (lambda: layers.hsigmoid(x(), label(), 1), "num_classes is 1"),
    "no samples": (lambda: nce_of(num_neg_samples=0), "number of samples is 0"),
    "an unknown sampler": (
        lambda: nce_of(sampler="zipf"),
        "sampler is 'zipf', not one of uniform, log_uniform, custom_dist",
    ),
    "a distribution of other classes": (
        lambda: nce_of(sampler="custom_dist", custom_dist=[1.0, 2.0]),
        "custom_dist has 2 probabilities, the sampler 'custom_dist' of 7 classes takes 7",
    ),
    "a distribution that nobody reads": (
        lambda: nce_of(custom_dist=WEIGHTS),
        "custom_dist has 7 probabilities, the sampler 'uniform' of 7 classes takes 0",
    ),
    "a class that is never drawn": (
        lambda: nce_of(sampler="custom_dist", custom_dist=[0.0] * 6 + [1.0]),
        "must give every class a probability above 0",
    ),
    "half a tree": (
        lambda: layers.hsigmoid(x(), label(), 9, path_table=layers.data("t", (3,), "int64")),
        "path_table and path_code belong together",
    ),
    "a table of another shape": (
        lambda: nce_of(param="shared", num_total_classes=9),
        r"parameter shared exists with shape \(7, 3\).*declared with shape \(9, 3\)",
    ),
}


def nce_of(num_total_classes: int = CLASSES, **how: Any) -> Var:
    inputs = x(), label()
    if how.get("param"):
        layers.nce(*inputs, CLASSES, param=how["param"])
    return layers.nce(*inputs, num_total_classes, **how)


@pytest.mark.parametrize("case", REFUSED)
def test_illegal_call_is_refused(case: str) -> None:
    call, complaint = REFUSED[case]

    with program(), pytest.raises(ProgramError, match=complaint):
        call()
