"""The training step against fakes: what is announced, bound, pushed and assigned, and when."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from psrt.communicator.base import Pulled
from psrt.core.clock import ManualClock
from psrt.core.tensors import Ragged
from psrt.core.types import F32, I64, Array
from psrt.graph import layers
from psrt.graph.builder import program
from psrt.graph.model import Model
from psrt.trainer.inputs.outputs import Measured, Outputs
from psrt.trainer.inputs.prefetch import PreparedBatch, prepare
from psrt.trainer.training.loop import Loop
from psrt.trainer.training.metrics import AucHistogram, Mean
from psrt.trainer.training.progress import Progress


@dataclass
class Journal:
    """Executor, scope and communicator in one; notes each call in order."""

    events: list[tuple[Any, ...]] = field(default_factory=list)
    wanted: Mapping[str, I64] = field(default_factory=dict)
    loop: Loop | None = None
    stop_at: int | None = None
    rounds: int = 0
    on_gradient: Any = None

    def pull_rows(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        self.events.append(("pull_rows", wanted["emb"].tolist()))
        return self.rows_of(wanted)

    def begin(self, wanted: Mapping[str, I64]) -> None:
        self.events.append(("begin", wanted["emb"].tolist()))
        self.wanted = wanted

    def offer(self, name: str, gradient: Any) -> None:
        self.events.append(("offer", name))

    def finish(self, gradients: Mapping[str, Any]) -> Pulled:
        self.events.append(("finish", gradients["w"].tolist()))
        rows = self.rows_of(self.wanted)
        self.wanted, self.rounds = {}, self.rounds + 1
        if self.loop is not None and self.rounds == self.stop_at:
            self.loop.stop.set()
        return Pulled({"w": np.full(1, self.rounds, np.float32)}, rows)

    def run(self, feed: Any, fetch: Sequence[str], rows: Mapping[str, Any]) -> list[Array]:
        self.events.append(("run", rows["emb"].ids.tolist(), rows["emb"].rows[:, 0].tolist()))
        return [np.array(0.5, np.float32)]

    def gradients(self) -> dict[str, Any]:
        return {"w": np.full(1, len(self.events), np.float32)}

    def __setitem__(self, name: str, array: Array) -> None:
        self.events.append(("assign", name, array.tolist()))

    def rows_of(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        """A row of id i holds i in round 0, i + 0.1 after round 1, …"""
        return {
            t: (ids + self.rounds / 10).astype(np.float32)[:, None] for t, ids in wanted.items()
        }

    def names(self) -> list[str]:
        return [event[0] for event in self.events]


def batches(*ids: int) -> Iterator[PreparedBatch]:
    return (prepare({"a": Ragged.of([[i]])}, {"emb": ["a"]}) for i in ids)


def loop_over(
    journal: Journal, clock: ManualClock | None = None, lines: list[str] | None = None
) -> Loop:
    said: list[str] = [] if lines is None else lines
    progress = Progress(1, 2.0, clock or ManualClock(), said.append)
    return Loop(journal, journal, journal, Outputs(a_model()), progress)


def a_model(**options: Any) -> Model:
    """A regression, or a classifier if `options` name a prediction."""
    with program():
        x = layers.data("x", shape=(1,))
        label = layers.data("label", shape=(1,))
        loss = layers.mean(layers.square_error_cost(layers.fc(x, 1), label))
        if options:
            options["label"], options["prediction"] = label, x
        return Model(loss, **options)


def test_the_next_batch_is_announced_before_the_current_one_is_computed() -> None:
    journal = Journal()

    loop_over(journal).run(batches(1, 2))

    assert journal.names() == [
        "pull_rows", "begin", "run", "finish", "assign", "run", "finish", "assign",
    ]  # fmt: skip
    assert journal.events[1] == ("begin", [2])


def test_each_gradient_is_offered_by_the_executor_itself() -> None:
    journal = Journal()

    loop_over(journal)
    journal.on_gradient("w", None)

    assert journal.events == [("offer", "w")]


def test_a_batch_computes_on_the_rows_that_came_back_for_it() -> None:
    journal = Journal()

    loop_over(journal).run(batches(1, 2, 3))

    runs = [event[1:] for event in journal.events if event[0] == "run"]
    expected = [([1], [1.0]), ([2], [2.0]), ([3], [3.1])]
    assert [ids for ids, _ in runs] == [ids for ids, _ in expected]
    np.testing.assert_allclose(
        [rows for _, rows in runs], [rows for _, rows in expected], rtol=1e-6
    )


def test_fresh_dense_values_are_assigned_before_the_next_step() -> None:
    journal = Journal()

    loop_over(journal).run(batches(1, 2))

    assert ("assign", "w", [1.0]) in journal.events
    assert journal.events.index(("assign", "w", [1.0])) < journal.names().index("run", 4)


def test_a_trainer_without_data_does_nothing() -> None:
    journal = Journal()

    loop_over(journal).run(batches())

    assert journal.events == []


def test_stop_ends_the_loop_after_the_step_it_was_set_in() -> None:
    journal = Journal(stop_at=1)
    journal.loop = loop_over(journal)

    journal.loop.run(batches(1, 2, 3))

    assert journal.names().count("run") == 1


def test_outputs_read_loss_probabilities_and_labels() -> None:
    outputs = Outputs(a_model(prediction_is="probability"))
    fetched = [np.array(0.25), np.array([[0.2], [0.9]]), np.array([[0.0], [1.0]])]

    measured = outputs.read(fetched)

    assert measured.loss == 0.25
    assert measured.scores is not None
    np.testing.assert_allclose(measured.scores, [[0.2, 0.9], [0, 1]])


def test_a_logit_is_turned_into_a_probability() -> None:
    outputs = Outputs(a_model(prediction_is="logit"))
    fetched = [np.array(0.25), np.array([[0.0], [-200.0], [200.0]]), np.ones((3, 1))]

    measured = outputs.read(fetched)

    assert measured.scores is not None
    np.testing.assert_allclose(measured.scores[0], [0.5, 0.0, 1.0], atol=1e-30)


def test_a_progress_line_covers_the_steps_since_the_previous_one() -> None:
    clock, lines = ManualClock(), list[str]()
    progress = Progress(2, 2.0, clock, lines.append)
    progress.start()

    for loss in (1.0, 0.5, 0.3, 0.1):
        clock.advance(1.0)
        progress.step(1, 5000, Measured(loss))

    assert lines == [
        "epoch 1/2  step 2  10,000 examples  5,000 ex/s  loss 0.7500",
        "epoch 1/2  step 4  20,000 examples  5,000 ex/s  loss 0.2000",
    ]


def test_the_summary_judges_the_last_epoch_and_counts_them_all() -> None:
    clock = ManualClock()
    progress = Progress(2, 100.0, clock, lambda line: None)
    progress.start()

    for epoch, loss in ((1, 4.0), (2, 1.0), (2, 3.0)):
        clock.advance(1.0)
        progress.step(epoch, 10, Measured(loss))

    summary = progress.summary()
    assert (summary["loss"], summary["steps"], summary["epochs"]) == (2.0, 3, 2)
    assert (summary["examples"], summary["examples_per_s"]) == (30, 10.0)
    assert summary["train_auc"] is None


def exact_auc(probabilities: Array, labels: Array) -> float:
    positives, negatives = probabilities[labels == 1], probabilities[labels == 0]
    wins = (positives[:, None] > negatives[None, :]).sum()
    ties = (positives[:, None] == negatives[None, :]).sum()
    return float(wins + ties / 2) / (len(positives) * len(negatives))


def test_auc_agrees_with_counting_all_pairs() -> None:
    random = np.random.default_rng(3)
    labels = (random.random(2000) < 0.3).astype(np.float32)
    probabilities = np.clip(random.normal(0.4 + 0.2 * labels, 0.2), 0, 1).astype(np.float32)
    histogram = AucHistogram()

    for part in np.array_split(np.arange(2000), 7):
        histogram.update(probabilities[part], labels[part])

    assert histogram.value() == pytest.approx(exact_auc(probabilities, labels), abs=1e-3)


def test_auc_of_ties_is_a_half_and_of_one_class_unknown() -> None:
    tied, single = AucHistogram(), AucHistogram()

    tied.update(np.full(4, 0.5, np.float32), np.array([0, 1, 1, 0], np.float32))
    single.update(np.array([0.1, 0.9], np.float32), np.ones(2, np.float32))

    assert tied.value() == 0.5
    assert math.isnan(single.value())


def test_probabilities_of_exactly_zero_and_one_are_counted() -> None:
    histogram = AucHistogram()

    histogram.update(np.array([0.0, 1.0], np.float32), np.array([0, 1], np.float32))

    assert histogram.value() == 1.0


def test_a_mean_is_weighted_by_examples() -> None:
    mean = Mean()

    mean.update(1.0, 30)
    mean.update(4.0, 10)

    assert mean.value() == 1.75
    assert math.isnan(Mean().value())
