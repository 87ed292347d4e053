"""The training run over a real executor and a communicator that writes a journal."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import psrt
from psrt.communicator.base import Pulled
from psrt.core.counters import Counters
from psrt.core.types import F32, I64, Array
from psrt.executor.profiling import Profiler
from psrt.graph import layers
from psrt.graph.builder import program
from psrt.graph.model import Model
from psrt.partition.transpile import trainer_program
from psrt.trainer.inputs.outputs import Measured, Outputs
from psrt.trainer.inputs.prefetch import BatchPreparer, PreparedBatch
from psrt.trainer.measuring import AucHistogram, Mean, Progress
from psrt.trainer.observing.spans import SpanTimes
from psrt.trainer.training.run_options import RunOptions
from psrt.trainer.training.training_run import TrainingRun
from tests.support.clock import ManualClock

OFFERS = {"fc_0.w_0", "fc_0.b_0", "emb"}


class Journal:
    """A communicator that notes each call; a row of id i holds i, and i + 0.1 after a round."""

    def __init__(self, one_call_step: bool = True) -> None:
        self.one_call_step = one_call_step
        self.counters = Counters()
        self.events: list[tuple[Any, ...]] = []
        self.offered: set[str] = set()
        self.rounds = 0
        self._wanted: Mapping[str, I64] = {}

    def watch(self, timeline: object) -> None:
        pass

    def start(self, timeout_s: float) -> dict[str, F32]:
        return {"fc_0.w_0": np.ones((1, 1), np.float32), "fc_0.b_0": np.zeros(1, np.float32)}

    def pull_rows(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        self.events.append(("pull", wanted["emb"].tolist()))
        return self.rows_of(wanted)

    def begin(self, wanted: Mapping[str, I64]) -> None:
        self.events.append(("begin", wanted["emb"].tolist()))
        self._wanted = wanted

    def offer(self, name: str, gradient: Any) -> None:
        self.offered.add(name)

    def finish(self, gradients: Mapping[str, Any]) -> Pulled:
        self.events.append(("finish", gradients["emb"].ids.tolist()))
        self.rounds += 1
        wanted, self._wanted = self._wanted, {}
        dense = {"fc_0.b_0": np.full(1, self.rounds, np.float32)}
        return Pulled(dense, self.rows_of(wanted))

    def flush(self, timeout_s: float, final: bool = False) -> dict[str, F32]:
        self.events.append(("flush",))
        return {}

    def stop(self, timeout_s: float, interrupted: bool = False) -> dict[str, F32]:
        self.events.append(("stop",))
        return {}

    def close(self) -> None:
        pass

    def rows_of(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        return {
            t: (ids + self.rounds / 10).astype(np.float32)[:, None] for t, ids in wanted.items()
        }

    def names(self) -> list[str]:
        return [event[0] for event in self.events]


def a_program() -> tuple[psrt.Program, str]:
    """The output, also the loss, is the row of an id plus a bias, under weight 1."""
    with program() as made:
        ids = layers.data("ids", shape=(1,), dtype="int64")
        row = layers.embedding(ids, (100, 1), is_sparse=True, is_distributed=True, param="emb")
        loss = layers.mean(layers.fc(layers.flatten(row), 1))
        psrt.optimizer.Sgd(0.1).minimize(loss)
    return trainer_program(made), loss.name


def opened(journal: Journal) -> tuple[TrainingRun, str]:
    trained, loss = a_program()
    run = TrainingRun(trained, psrt.Scope(), RunOptions())
    run.open(journal, 1.0)
    return run, loss


def batches(run: TrainingRun, *ids: int) -> Iterator[PreparedBatch]:
    prepare = BatchPreparer(run.program).prepare
    return (prepare({"ids": np.array([[i]], np.int64)}) for i in ids)


def ignore(batch: object, following: object, fetched: Sequence[Any]) -> None:
    pass


def losses_of(journal: Journal, *ids: int) -> list[float]:
    run, loss = opened(journal)
    found: list[float] = []
    run.run_from(
        batches(run, *ids),
        [loss],
        lambda batch, following, fetched: found.append(float(fetched[0])),
    )
    return found


def test_the_ids_of_the_next_batch_are_known_before_the_current_one_is_computed() -> None:
    journal = Journal()

    losses_of(journal, 1, 2)

    assert journal.events == [
        ("pull", [1]), ("begin", [2]), ("finish", [1]), ("finish", [2]),
    ]  # fmt: skip


def test_each_gradient_is_offered_to_the_communicator() -> None:
    journal = Journal()

    losses_of(journal, 1)

    assert journal.offered == OFFERS


def test_a_batch_computes_on_the_rows_and_parameters_that_came_back() -> None:
    losses = losses_of(Journal(), 1, 2, 3)

    # Rows of batches 1 and 2 are read in rounds 0 and 1 …, the bias counts rounds.
    np.testing.assert_allclose(losses, [1.0, 2.1 + 1.0, 3.2 + 2.0], rtol=1e-6)


def test_the_spans_of_steps_are_timed_for_those_that_ask() -> None:
    trained, loss = a_program()
    run, times = TrainingRun(trained, psrt.Scope(), RunOptions()), SpanTimes()
    run.spans.times = times
    run.open(Journal(), 1.0)

    run.run_from(batches(run, 1, 2, 3), [loss], ignore)

    counts = {name: sum(found.counts) for name, found in times.durations.totals().items()}
    assert counts == {"feed": 4, "pull": 1, "step": 3, "prefetch": 2, "push-pull": 3}


def test_times_and_a_profile_are_taken_together() -> None:
    run, loss = opened(Journal())
    run.spans.times, run.profiler = SpanTimes(), Profiler()

    run.run_from(batches(run, 1), [loss], ignore)

    assert sum(run.spans.times.durations.totals()["step"].counts) == 1
    assert run.profiler.step_time().steps == 1


def test_a_trainer_without_data_does_nothing() -> None:
    journal = Journal()

    losses_of(journal)

    assert journal.events == []


def test_stop_ends_a_run_after_the_step_it_was_set_in() -> None:
    journal, over = Journal(), threading.Event()
    run, loss = opened(journal)

    run.run_from(batches(run, 1, 2, 3), [loss], lambda *step: over.set(), stop=over)

    assert journal.names().count("finish") == 1


def test_held_gradients_leave_in_the_call_that_brings_the_next_rows() -> None:
    journal = Journal()
    run, loss = opened(journal)

    losses = [float(run.step(batch, [loss], may_hold=True)[0]) for batch in batches(run, 1, 2, 3)]
    run.settle()

    assert journal.events == [
        ("pull", [1]),
        ("begin", [2]), ("finish", [1]),
        ("begin", [3]), ("finish", [2]),
        ("finish", [3]),
    ]  # fmt: skip
    np.testing.assert_allclose(losses, losses_of(Journal(), 1, 2, 3), rtol=1e-6)


def test_modes_that_push_in_the_background_hold_nothing() -> None:
    journal = Journal(one_call_step=False)
    run, loss = opened(journal)

    for batch in batches(run, 1, 2):
        run.step(batch, [loss], may_hold=True)

    assert journal.names() == ["pull", "finish", "pull", "finish"]


READERS = {
    "the scope": lambda run: run.scope["fc_0.b_0"],
    "a flush": lambda run: run.flush(1.0),
    "rows": lambda run: run.pull_rows({"emb": np.array([7], np.int64)}),
    "stop": lambda run: run.stop(1.0),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_whatever_reads_parameters_sends_held_gradients_first(read: Any) -> None:
    journal = Journal()
    run, loss = opened(journal)
    (batch,) = batches(run, 1)
    run.step(batch, [loss], may_hold=True)
    assert journal.names() == ["pull"]

    read(run)

    assert journal.events[1] == ("finish", [1])
    assert run.scope["fc_0.b_0"] == 1.0
    assert journal.names().count("finish") == 1


def test_a_fetched_parameter_is_the_one_after_the_step() -> None:
    run, loss = opened(Journal())
    (batch,) = batches(run, 1)

    _, bias = run.step(batch, [loss, "fc_0.b_0"], may_hold=True)

    assert bias == 1.0


def test_two_runs_over_one_scope_do_not_lose_what_the_other_holds() -> None:
    journals = Journal(), Journal()
    first, loss = opened(journals[0])
    trained, _ = a_program()
    second = TrainingRun(trained, first.scope, RunOptions())
    second.open(journals[1], 1.0)
    for run in (first, second):
        (batch,) = batches(run, 1)
        run.step(batch, [loss], may_hold=True)

    second.close()

    assert "finish" in journals[0].names()
    assert "finish" not in journals[1].names()


def test_a_closed_run_drops_what_it_holds() -> None:
    journal = Journal()
    run, loss = opened(journal)
    (batch,) = batches(run, 1)
    run.step(batch, [loss], may_hold=True)

    run.close()

    assert run.scope["fc_0.b_0"] == 0.0
    assert "finish" not in journal.names()


def test_the_clock_of_progress_starts_with_the_first_rows() -> None:
    journal = Journal()
    run, loss = opened(journal)
    seen: list[list[str]] = []

    run.run_from(batches(run, 1), [loss], ignore, on_start=lambda: seen.append(journal.names()))

    assert seen == [["pull"]]


def a_model(**options: Any) -> Model:
    """A regression, or a classifier if `options` name a prediction."""
    with program():
        x = layers.data("x", shape=(1,))
        label = layers.data("label", shape=(1,))
        loss = layers.mean(layers.square_error_cost(layers.fc(x, 1), label))
        if options:
            options["label"], options["prediction"] = label, x
        return Model(loss, **options)


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
