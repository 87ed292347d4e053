"""Metrics against their definitions in plain numpy, over one batch and over several."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from psrt import Executor, Scope, layers, program
from psrt.core.errors import DataError, ProgramError
from psrt.core.types import Array
from psrt.graph.program import Var

RNG = np.random.default_rng(23)
Batches = list[Mapping[str, Array]]
SCORES = [RNG.random((n, 1)).astype("f4") for n in (6, 1, 9)]
LABELS = [(RNG.random((n, 1)) < 0.4).astype("f4") for n in (6, 1, 9)]
BINARY: Batches = [{"x": s, "label": z} for s, z in zip(SCORES, LABELS, strict=True)]
CLASSES: Batches = [
    {"x": RNG.normal(size=(n, 5)).astype("f4"), "label": RNG.integers(0, 5, (n, 1))} for n in (6, 3)
]
ALL_SCORES, ALL_LABELS = np.concatenate(SCORES)[:, 0], np.concatenate(LABELS)[:, 0]


def x(size: int = 1) -> Var:
    return layers.data("x", (size,))


def label() -> Var:
    return layers.data("label")


def class_label() -> Var:
    return layers.data("label", (1,), "int64")


def after(build: Callable[[], Var], batches: Batches) -> float:
    """The metric in the last of some batches."""
    with program() as p:
        out = build()
    scope = Scope()
    scope.init_parameters(p)
    executor = Executor(p, scope)
    for batch in batches:
        (found,) = executor.run(batch, [out], roles=("forward",))
    return float(found)  # type: ignore[arg-type]


def area_under_roc(scores: Array, labels: Array) -> float:
    """Share of pairs in which the positive scores above the negative; ties count half."""
    pairs = scores[labels == 1][:, None] - scores[labels == 0][None, :]
    return float((np.sign(pairs) / 2 + 0.5).mean())


def average_precision(scores: Array, labels: Array) -> float:
    """The mean precision at the rank of each positive."""
    ranked = labels[np.argsort(-scores)]
    precision = np.cumsum(ranked) / np.arange(1, len(ranked) + 1)
    return float(precision[ranked == 1].mean())


@pytest.mark.parametrize("logits", [False, True])
@pytest.mark.parametrize(("curve", "area"), [("ROC", area_under_roc), ("PR", average_precision)])
def test_auc_is_of_all_examples_and_batch_auc_of_the_last_batch(
    curve: str, area: Callable[[Array, Array], float], logits: bool
) -> None:
    batches = BINARY
    if logits:
        batches = [{**b, "x": np.log(b["x"] / (1 - b["x"])).astype("f4")} for b in BINARY]

    whole = after(lambda: layers.auc(x(), label(), 1 << 20, logits, curve), batches)
    last = after(lambda: layers.batch_auc(x(), label(), 1 << 20, logits, curve), batches)

    assert whole == pytest.approx(area(ALL_SCORES, ALL_LABELS))
    assert last == pytest.approx(area(SCORES[-1][:, 0], LABELS[-1][:, 0]))


@pytest.mark.parametrize("curve", ["ROC", "PR"])
def test_auc_of_one_class_is_nan(curve: str) -> None:
    batch = {"x": SCORES[0], "label": np.zeros((6, 1), "f4")}

    assert np.isnan(after(lambda: layers.batch_auc(x(), label(), curve=curve), [batch]))


def right(batch: Mapping[str, Array], k: int) -> Array:
    """Tests of the label being among the k highest scores; the first of equal scores counts."""
    top = np.argsort(-batch["x"], axis=1, kind="stable")[:, :k]
    return np.asarray((top == batch["label"]).any(axis=1))


@pytest.mark.parametrize("k", [1, 2, 5])
def test_accuracy_of_the_batch_and_of_all_examples(k: int) -> None:
    batch = after(lambda: layers.accuracy(x(5), class_label(), k), CLASSES)
    running = after(lambda: layers.accuracy(x(5), class_label(), k, running=True), CLASSES)

    assert batch == right(CLASSES[-1], k).mean()
    assert running == np.concatenate([right(b, k) for b in CLASSES]).mean()


def test_accuracy_counts_the_lower_of_equal_classes() -> None:
    batch = {"x": np.zeros((5, 5), "f4"), "label": np.arange(5)[:, None]}

    assert after(lambda: layers.accuracy(x(5), class_label(), 2), [batch]) == 0.4


def test_a_score_that_is_nan_is_never_right() -> None:
    batch = {"x": np.full((2, 5), np.nan, "f4"), "label": np.array([[0], [4]])}

    assert after(lambda: layers.accuracy(x(5), class_label(), 4), [batch]) == 0


def test_label_that_is_no_class_is_named() -> None:
    batch = {"x": np.zeros((1, 5), "f4"), "label": np.array([[5]])}

    with pytest.raises(DataError, match="Label 5 is not one of the classes 0 to 4"):
        after(lambda: layers.accuracy(x(5), class_label()), [batch])


@pytest.mark.parametrize("threshold", [0.5, 0.2])
def test_precision_recall_and_f1_of_all_examples(threshold: float) -> None:
    found = [
        after(lambda i=i: layers.precision_recall(x(), label(), threshold)[i], BINARY)  # type: ignore[misc]
        for i in range(3)
    ]

    predicted = threshold < ALL_SCORES
    hits = (predicted & (ALL_LABELS == 1)).sum()
    precision, recall = hits / predicted.sum(), hits / ALL_LABELS.sum()
    f1 = 2 * precision * recall / (precision + recall)
    np.testing.assert_allclose(found, [precision, recall, f1])


def test_precision_of_no_prediction_is_nan() -> None:
    precision = after(lambda: layers.precision_recall(x(), label(), 2.0).precision, BINARY)

    assert np.isnan(precision)


@pytest.mark.parametrize(("name", "power"), [("mae", 1), ("rmse", 2)])
def test_mean_error_of_all_elements(name: str, power: int) -> None:
    found = after(lambda: getattr(layers, name)(x(), label()), BINARY)

    errors = np.abs(ALL_SCORES - ALL_LABELS).astype(float)
    assert found == pytest.approx((errors**power).mean() ** (1 / power), rel=1e-6)


def test_counts_start_anew_after_reset_state() -> None:
    with program() as p:
        out = layers.accuracy(x(5), class_label(), running=True)
    scope = Scope()
    scope.init_parameters(p)
    executor = Executor(p, scope)
    executor.run(CLASSES[0], roles=("forward",))

    scope.reset_state(p)
    (found,) = executor.run(CLASSES[1], [out], roles=("forward",))

    assert found == right(CLASSES[1], 1).mean()


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "an unknown curve": (
        lambda: layers.auc(x(), label(), curve="DET"),
        "layers.auc.*argument curve is 'DET', not one of ROC, PR",
    ),
    "auc of no bins": (lambda: layers.auc(x(), label(), bins=0), "bins is 0, not 1 or more"),
    "auc of one bin too few": (lambda: layers.batch_auc(x(), label(), bins=0), "bins is 0"),
    "auc of several columns": (
        lambda: layers.batch_auc(x(3), label()),
        r"argument input must have shape \(-1, 1\), not \(-1, 3\)",
    ),
    "accuracy of float labels": (
        lambda: layers.accuracy(x(3), label()),
        r"layers.accuracy.*label must be int64 \(-1, 1\) for input float32 \(-1, 3\)",
    ),
    "more places than classes": (
        lambda: layers.accuracy(x(3), class_label(), k=4),
        r"argument k is 4, not from 1 to the classes of input float32 \(-1, 3\)",
    ),
    "precision of several columns": (
        lambda: layers.precision_recall(x(2), label()),
        r"layers.precision_recall.*input must have shape \(-1, 1\), not \(-1, 2\)",
    ),
    "error of other shapes": (
        lambda: layers.mae(x(2), label()),
        r"layers.mae.*label is float32 \(-1, 1\), argument input is float32 \(-1, 2\)",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_illegal_call_is_refused(case: str) -> None:
    call, complaint = REFUSED[case]

    with program(), pytest.raises(ProgramError, match=complaint):
        call()
