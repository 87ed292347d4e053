"""Decisions about validations: when they are due, which is best, when a training ends."""

from __future__ import annotations

import itertools
import math
import threading
from contextlib import nullcontext

import pytest

import psrt
from psrt import layers
from psrt.config.sections import ValidationConfig
from psrt.core.errors import ConfigError, UnavailableError
from psrt.core.threads import CrashReport
from psrt.trainer.inputs import Measured
from psrt.trainer.measuring import Tally
from psrt.trainer.validating import (
    Actions,
    Contest,
    DueSteps,
    EarlyEnd,
    Point,
    Validated,
    Validator,
    contest_of,
)

NAN = math.nan


def taken(contest: Contest, *values: float) -> list[tuple[bool, bool]]:
    standings = [contest.take({contest.metric: value}) for value in values]
    return [(standing.is_best, standing.ends) for standing in standings]


def test_the_best_value_is_the_highest_so_far() -> None:
    contest = Contest("auc", higher=True)

    assert [best for best, _ in taken(contest, 0.6, 0.7, 0.65, 0.7, 0.71)] == [1, 1, 0, 0, 1]
    assert contest.best == 0.71


def test_the_best_loss_is_the_lowest_so_far() -> None:
    contest = Contest("loss", higher=False)

    assert [best for best, _ in taken(contest, 0.6, 0.5, 0.55)] == [1, 1, 0]


def test_a_small_gain_is_no_improvement() -> None:
    contest = Contest("auc", higher=True, min_delta=0.01)

    assert [best for best, _ in taken(contest, 0.5, 0.505, 0.5101, 0.6)] == [1, 0, 1, 1]


def test_a_training_ends_after_as_many_in_a_row_as_patience_names() -> None:
    """Every order of better and worse values up to six, against a count by hand."""
    for patience, turns in itertools.product((1, 2, 3), itertools.product((1, 0), repeat=6)):
        contest, value, waited = Contest("auc", True, patience=patience), 0.0, 0
        for index, is_better in enumerate(turns):
            value += is_better
            ((best, ends),) = taken(contest, value)
            is_best = bool(is_better) or index == 0
            waited = 0 if is_best else waited + 1
            assert (best, ends) == (is_best, waited >= patience)


def test_a_value_that_is_no_number_is_never_best() -> None:
    assert taken(Contest("auc", True, patience=2), NAN, 0.5, NAN, NAN) == [
        (False, False),
        (True, False),
        (False, False),
        (False, True),
    ]


def test_without_patience_no_training_ends() -> None:
    assert not any(ends for _, ends in taken(Contest("auc", True), *[0.5] * 50))


def test_epochs_are_validated_after_their_last_step() -> None:
    epochs = [1, 1, 1, 2, 2, 3]
    due = DueSteps()

    found = [due.after(now, then) for now, then in zip(epochs, [*epochs[1:], None], strict=True)]

    assert found == [False, False, True, False, True, True]


def test_steps_are_validated_at_an_interval_and_at_the_end() -> None:
    due = DueSteps(every_steps=3)

    assert [due.after(1, 1) for _ in range(7)] == [False, False, True] * 2 + [False]
    assert due.after(1, None)


def model(has_prediction: bool) -> psrt.Model:
    with psrt.program():
        x, label = layers.data("x", (2,)), layers.data("label", (1,))
        score = layers.fc(x, 1)
        loss = layers.mean(layers.square_error_cost(score, label))
        mine = {"mine": loss}
        if not has_prediction:
            return psrt.Model(loss, metrics=mine)
        return psrt.Model(loss, prediction=score, label=label, metrics=mine)


@pytest.mark.parametrize(
    ("config", "has_prediction", "expected"),
    [
        (ValidationConfig(), True, ("auc", [1, 1, 0])),
        (ValidationConfig(), False, ("loss", [1, 0, 1])),
        (ValidationConfig(metric="loss"), True, ("loss", [1, 0, 1])),
        (ValidationConfig(metric="mine"), False, ("mine", [1, 1, 0])),
        (ValidationConfig(metric="mine", better="lower"), False, ("mine", [1, 0, 1])),
    ],
)
def test_the_metric_and_its_direction_follow_from_the_model(
    config: ValidationConfig, has_prediction: bool, expected: tuple[str, list[int]]
) -> None:
    contest = contest_of(config, model(has_prediction))

    found = [best for best, _ in taken(contest, 0.5, 0.6, 0.4)]
    assert (contest.metric, found) == expected


def test_an_unknown_metric_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="metric is 'acu'") as caught:
        contest_of(ValidationConfig(metric="acu"), model(True))

    assert "auc" in caught.value.hint


def tally(loss: float) -> Tally:
    measured = Tally()
    measured.update(Measured(loss, None, {}), 10)
    return measured


class Lab:
    """A validator whose tests have given losses; `done` is what it did."""

    def __init__(
        self, losses: list[float], patience: int = 0, keeps: bool = True, kept: float | None = None
    ) -> None:
        self.losses, self.done = iter(losses), list[str]()
        of_before = None if kept is None else tally(kept)
        keep = self.keep if keeps else None
        actions = Actions(self.test, keep, self.end, nullcontext, lambda: of_before)
        contest = Contest("loss", False, patience=patience)
        self.validator = Validator(DueSteps(), contest, actions, lambda line: None)

    def test(self) -> Tally:
        return tally(next(self.losses))

    def keep(self) -> None:
        self.done.append("keep")

    def end(self) -> None:
        self.done.append("end")

    def epochs(self, count: int, first: int = 1) -> list[str]:
        for epoch in range(first, count + 1):
            self.validator.after(epoch, epoch + 1 if epoch < count else None, 10 * epoch)
            if self.validator.has_ended:
                break
        return self.done


def test_the_best_model_is_kept_and_training_ends_when_it_improves_no_more() -> None:
    lab = Lab([0.5, 0.4, 0.45, 0.41, 0.3], patience=2)

    assert lab.epochs(9) == ["keep", "keep", "end"]
    summary = lab.validator.summary()
    assert [each["loss"] for each in summary["validations"]] == [0.5, 0.4, 0.45, 0.41]
    assert summary["best_validation"] == summary["validations"][1]
    assert summary["ended_early"] is True


def test_the_last_validation_ends_nothing() -> None:
    lab = Lab([0.5, 0.6], patience=1, keeps=False)

    assert lab.epochs(2) == []
    assert lab.validator.summary()["ended_early"] is False


def test_other_trainers_end_once_trainer_0_has_decided_it() -> None:
    ended, answers = threading.Event(), iter([False, UnavailableError("away"), True])

    def is_decided() -> bool:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with EarlyEnd(is_decided, ended, CrashReport(), every_s=0.001) as end:
        assert ended.wait(10.0)
    assert end.has_come


def test_a_trainer_that_does_not_look_never_ends_early() -> None:
    def is_decided() -> bool:
        raise AssertionError("it looked")

    crashes = CrashReport()
    with EarlyEnd(is_decided, threading.Event(), crashes, looks=False, every_s=0.001) as end:
        pass
    assert not end.has_come
    crashes.check()


def behind(epoch: int, validated: dict) -> Point:
    """The point before the first step of the epoch after `epoch`, with ten steps an epoch."""
    return Point(epoch + 1, 10 * epoch, True, validated)


LOSSES = list(itertools.product((1.0, 0.5, 0.2), repeat=6))


@pytest.mark.parametrize("has_last", [True, False])
def test_a_training_that_is_resumed_ends_where_it_would_have_ended(has_last: bool) -> None:
    """All losses of six epochs, cut behind each; the state may lack the validation of that."""
    for losses, cut in itertools.product(LOSSES, range(2, 6)):
        whole = Lab(list(losses), patience=2, keeps=False)
        whole.epochs(6)
        if len(whole.validator.history) < cut:  # it has ended before
            continue
        first, made = Lab(list(losses), patience=2, keeps=False), cut if has_last else cut - 1
        first.epochs(cut)

        second = Lab(list(losses[made:]), patience=2, keeps=False)
        second.validator.go_on(behind(cut, first.validator.course_at(10 * made)))
        if not second.validator.has_ended:
            second.epochs(6, cut + 1)

        both = first.validator.history[:made] + second.validator.history
        assert both == whole.validator.history
        assert second.validator.has_ended == whole.validator.has_ended
        assert second.validator.best == whole.validator.best


def test_no_worse_model_replaces_the_kept_one_though_the_state_is_older() -> None:
    course = Validated(10, 0, {"epoch": 1, "step": 10, "loss": 0.5}).plain()
    lab = Lab([0.4, 0.35, 0.2], kept=0.3)
    lab.validator.go_on(behind(1, course))

    assert lab.epochs(4, 2) == ["keep"]
    assert lab.validator.has_kept
    assert [each["loss"] for each in lab.validator.history] == [0.4, 0.35, 0.2]


def test_a_kept_model_without_a_state_is_the_best_of_before() -> None:
    lab = Lab([0.4, 0.2], kept=0.3)
    lab.validator.go_on(behind(1, {}))

    assert lab.epochs(3, 2) == ["keep"]


def test_the_course_of_a_step_has_no_later_validation() -> None:
    lab = Lab([0.5, 0.4, 0.45])
    lab.epochs(3)

    assert lab.validator.course_at(9) == {}
    assert lab.validator.course_at(29)["best"]["loss"] == 0.4
    assert Validated.of(lab.validator.course_at(30)) == Validated(30, 1, lab.validator.history[1])


def test_more_patience_lets_a_training_go_on_that_had_ended() -> None:
    course = Validated(20, 2, {"epoch": 1, "step": 10, "loss": 0.5})

    assert course.has_ended(1)
    assert course.has_ended(2)
    assert not course.has_ended(3)
    assert not course.has_ended(0)


def test_a_trainer_that_had_ended_early_ends_at_once_without_a_call() -> None:
    def is_decided() -> bool:
        raise AssertionError("it looked")

    ended, crashes = threading.Event(), CrashReport()
    with EarlyEnd(is_decided, ended, crashes, every_s=0.001, has_come=True) as end:
        assert ended.is_set()
    assert end.has_come
    crashes.check()
