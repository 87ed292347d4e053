"""AUC within groups and by weight, and functions of the user's, against pairs one by one."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.core.errors import ProgramError
from psrt.executor.memory import Scope
from psrt.executor.program import Executor
from psrt.trainer.inputs import Outputs, Scored
from psrt.trainer.measuring import ScoredRows, Tally, grouped_auc


def by_pairs(scores: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> float:
    """The share of pairs of a positive and a negative in which the positive is higher."""
    won = all_pairs = 0.0
    for i in np.flatnonzero(labels > 0.5):
        for j in np.flatnonzero(labels <= 0.5):
            pair = float(weights[i]) * float(weights[j])
            won += pair * ((scores[i] > scores[j]) + 0.5 * (scores[i] == scores[j]))
            all_pairs += pair
    return won / all_pairs if all_pairs else math.nan


def by_groups(
    scores: np.ndarray, labels: np.ndarray, groups: np.ndarray, weights: np.ndarray
) -> float:
    areas, sizes = [], []
    for group in np.unique(groups):
        mine = groups == group
        area = by_pairs(scores[mine], labels[mine], weights[mine])
        if not math.isnan(area):
            areas.append(area)
            sizes.append(float(weights[mine].sum(dtype=np.float64)))
    return float(np.average(areas, weights=sizes)) if areas else math.nan


def examples() -> Iterator[tuple[np.ndarray, ...]]:
    """Scores with many ties, labels, groups and weights of up to 60 examples."""
    random = np.random.default_rng(3)
    for rows in (1, 2, 3, 7, 20, 60) * 8:
        scores = random.integers(0, 9, rows).astype(np.float32) / 8
        labels = (random.random(rows) < 0.4).astype(np.float32)
        groups = random.integers(-3, 4, rows) * 2**61
        weights = random.integers(0, 4, rows).astype(np.float32)
        yield scores, labels, groups, weights


def test_the_areas_are_those_of_pairs() -> None:
    for scores, labels, groups, weights in examples():
        ones = np.ones(len(scores))
        found = (
            grouped_auc(scores, labels, groups),
            grouped_auc(scores, labels, groups, weights),
            grouped_auc(scores, labels, None, weights),
            grouped_auc(scores, labels),
        )
        expected = (
            by_groups(scores, labels, groups, ones),
            by_groups(scores, labels, groups, weights),
            by_pairs(scores, labels, weights),
            by_pairs(scores, labels, ones),
        )
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_score_that_is_no_number_counts_as_0_and_nothing_has_no_area() -> None:
    labels = np.array([1, 0], np.float32)

    assert grouped_auc(np.array([math.nan, 0.5], np.float32), labels) == 0.0
    assert math.isnan(grouped_auc(labels[:0], labels[:0]))


def test_rows_count_the_newest_examples_only() -> None:
    def scored(value: float) -> Scored:
        ones = np.full(4, value, np.float32)
        return Scored(ones, ones, None, None, {"mean": lambda p, y: p.mean()})

    rows = ScoredRows(limit=6)
    for value in (1, 2, 3, 4):
        rows.add(scored(value))

    assert rows.values() == {"mean": 3.5}
    assert ScoredRows().values() == {}


def model_of(**measures: object) -> psrt.Model:
    with psrt.program():
        user = layers.data("user", (1,), "int64")
        weight, label = layers.data("weight", (1,)), layers.data("label", (1,))
        score = layers.fc(layers.data("x", (2,)), 1)
        loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(score, label))
        given = {"group": user, "weight": weight} | measures
        return psrt.Model(
            loss, score, label, psrt.optimizer.Sgd(0.1), prediction_is="logit", **given
        )


def batches(rows: int, count: int) -> list[dict[str, np.ndarray]]:
    random = np.random.default_rng(5)
    return [
        {
            "user": random.integers(0, 5, (rows, 1)) + 2**60,
            "weight": random.random((rows, 1), np.float32),
            "label": (random.random((rows, 1)) < 0.5).astype(np.float32),
            "x": random.normal(size=(rows, 2)).astype(np.float32),
        }
        for _ in range(count)
    ]


def test_a_model_is_measured_over_all_batches_by_group_weight_and_function() -> None:
    """Groups of which two differ in the last bit of int64, which float32 would not tell apart."""
    seen: list[int] = []

    def half(predictions: np.ndarray, labels: np.ndarray) -> float:
        seen.append(len(predictions))
        return float(np.mean((predictions > 0.5) == labels))

    model, fed = model_of(functions={"half": half}), batches(40, 3)
    scope, outputs, tally = Scope(), Outputs(model), Tally(ScoredRows())
    scope.init_parameters(model.program)
    executor = Executor(model.program, scope)
    logits = []
    for feed in fed:
        found = executor.run(feed, outputs.names, roles=("forward",))
        logits.append(found[1].reshape(-1))
        tally.update(outputs.read(found), 40)

    joined = {name: np.concatenate([each[name] for each in fed]).reshape(-1) for name in fed[0]}
    scores = 1 / (1 + np.exp(-np.concatenate(logits)))
    values = tally.values()
    expected = by_groups(scores, joined["label"], joined["user"], joined["weight"])
    assert values["gauc"] == pytest.approx(expected, abs=1e-9)
    expected = by_pairs(scores, joined["label"], joined["weight"])
    assert values["weighted_auc"] == pytest.approx(expected, abs=1e-9)
    assert values["half"] == pytest.approx(np.mean((scores > 0.5) == joined["label"]))
    assert seen == [120]
    assert "gauc" in tally.text()


@pytest.mark.parametrize(
    ("measures", "why"),
    [
        ({"group": "user"}, "was given 'user' as group"),
        ({"functions": {"auc": len}}, "auc is taken"),
        ({"functions": {"mine": 3}}, "cannot be called"),
    ],
)
def test_measures_that_cannot_be_are_refused(measures: dict, why: str) -> None:
    with pytest.raises(ProgramError, match=why):
        model_of(**measures)


def test_measures_take_a_prediction() -> None:
    with psrt.program():
        x = layers.data("x", (1,))
        loss = layers.mean(layers.fc(x, 1))
        with pytest.raises(ProgramError, match="has no prediction"):
            psrt.Model(loss, group=x)


def test_a_function_that_returns_no_number_is_refused_by_name() -> None:
    ones = np.ones(2, np.float32)
    rows = ScoredRows()
    rows.add(Scored(ones, ones, None, None, {"mine": lambda p, y: "high"}))

    with pytest.raises(ProgramError, match=r"functions\['mine'\] .* returned 'high'"):
        rows.values()
