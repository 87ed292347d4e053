"""Tests on held-back files while training goes on, and what follows from them.

They change nothing: rows are read without creating any, and counters of metrics are those of a
scope of its own. Trainers other than trainer 0 train on meanwhile; in sync they wait for its next
round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from psrt.trainer.measuring import Tally, number
from psrt.trainer.validating.contest import Contest
from psrt.trainer.validating.due import DueSteps
from psrt.trainer.validating.validated import Validated


@dataclass(frozen=True)
class Actions:
    """The work of a validation: `test` measures, `keep` saves the best model or is None, `end`
    ends the training of all trainers. `pause` surrounds all of it. `kept` measures the model that
    an earlier process has kept, None = there is none."""

    test: Callable[[], Tally]
    keep: Callable[[], None] | None
    end: Callable[[], None]
    pause: Callable[[], AbstractContextManager[None]]
    kept: Callable[[], Tally | None] = lambda: None


@dataclass(frozen=True)
class Point:
    """End of an earlier process: after `step` steps, in `epoch`, or before its first step
    (`begins_epoch`). `validated` is its `Validated` as JSON, empty = it has none."""

    epoch: int
    step: int
    begins_epoch: bool
    validated: Mapping[str, Any]


class Validator:
    """The validations of one training; `history` has the numbers of each, `best` the best one.

    `has_kept` is True while the directory of `keep` has the model of the best one.

    `say` gets a line about each, `record` its numbers.
    """

    def __init__(
        self,
        due: DueSteps,
        contest: Contest,
        actions: Actions,
        say: Callable[[str], None],
        record: Callable[[dict[str, Any]], None] = lambda numbers: None,
    ) -> None:
        self._record = record
        self._due, self._contest, self._actions, self._say = due, contest, actions, say
        self.history: list[dict[str, Any]] = []
        self.best: dict[str, Any] | None = None
        self.has_ended = self.has_kept = False
        self._keeping = contest.copy()
        self._courses: list[Validated] = []

    def go_on(self, point: Point) -> None:
        """Go on behind the steps of an earlier process, with its standing and its best model.

        A validation that was due there, and was not made, is made now. A training that had ended
        early ends again.
        """
        former = Validated.of(point.validated)
        self._due.begin_at(point.step)
        if former is not None:
            self._go_on_from(former)
        self._go_on_with_kept(former)
        if former is None:
            return
        if former.step < point.step and self._due.is_due_at(point.begins_epoch):
            with self._actions.pause():
                self._validate(point.epoch - point.begins_epoch, point.step, is_last=False)
        elif self._contest.has_ended:
            self._end()

    def _go_on_from(self, former: Validated) -> None:
        self._courses.append(former)
        self.best = None if former.best is None else dict(former.best)
        best = (former.best or {}).get(self._contest.metric)
        self._contest.go_on(math.nan if best is None else best, former.waited)

    def _go_on_with_kept(self, former: Validated | None) -> None:
        """Compare with the model that an earlier process has kept: no worse one replaces it."""
        tested = self._actions.kept()
        if tested is None:
            return
        self.has_kept = True
        self._keeping.take(_values(tested))
        if former is None:
            self._contest.take(_values(tested))
            self.best = _entry(tested)
        self._say(f"goes on with the model in --save as the best one: {tested.text()}")

    def after(self, epoch: int, following: int | None, step: int) -> Tally | None:
        """Validate after step number `step`, of `epoch`; returns None if that is not due.

        `following` is the epoch of the next step, None = there is none.
        """
        if not self._due.after(epoch, following):
            return None
        with self._actions.pause():
            return self._validate(epoch, step, is_last=following is None)

    def course_at(self, step: int) -> dict[str, Any]:
        """The `Validated` at a step as JSON, empty if there was no validation; on any thread."""
        found = next((each for each in reversed(self._courses) if each.step <= step), None)
        return {} if found is None else found.plain()

    def _validate(self, epoch: int, step: int, is_last: bool) -> Tally:
        tested = self._actions.test()
        standing = self._contest.take(_values(tested))
        self.history.append(_entry(tested, epoch, step))
        self._record(self.history[-1])
        note = "  best so far" if standing.is_best else ""
        self._say(f"validation  {tested.examples:,} examples  {tested.text()}{note}")
        if standing.is_best:
            self.best = self.history[-1]
        if self._keeping.take(_values(tested)).is_best and self._actions.keep is not None:
            self._actions.keep()
            self.has_kept = True
        self._courses.append(Validated(step, self._contest.waited, self.best))
        if standing.ends and not is_last:
            self._end()
        return tested

    def _end(self) -> None:
        self.has_ended = True
        self._say(f"ends early: {self._contest.metric} {self._course()}")
        self._actions.end()

    def _course(self) -> str:
        if self.best is None:
            return "was never a number"
        epoch, step = self.best["epoch"], self.best["step"]
        where = (
            "before it was resumed" if step is None else f"of epoch {epoch} after {step:,} steps"
        )
        return f"has not improved; the best validation was that {where}"

    def summary(self) -> dict[str, Any]:
        """Return the numbers of the report."""
        return {
            "validations": self.history,
            "best_validation": self.best,
            "ended_early": self.has_ended,
        }


def _values(tested: Tally) -> dict[str, float]:
    return {**tested.metrics, "loss": tested.loss.value(), "auc": tested.auc.value()}


def _entry(tested: Tally, epoch: int | None = None, step: int | None = None) -> dict[str, Any]:
    """The numbers of a validation; without an epoch that of a model of an earlier process."""
    numbers = {name: number(value) for name, value in _values(tested).items()}
    return {"epoch": epoch, "step": step, "examples": tested.examples, **numbers}
