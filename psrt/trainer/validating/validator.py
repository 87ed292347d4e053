"""Tests on held-back files while training goes on, and what follows from them.

They change nothing: rows are read without creating any, and counters of metrics are those of a
scope of its own. Trainers other than trainer 0 train on meanwhile; in sync they wait for its next
round.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from psrt.trainer.measuring import Tally, number
from psrt.trainer.validating.contest import Contest
from psrt.trainer.validating.due import DueSteps


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


class Validator:
    """The validations of one training; `history` has the numbers of each, `best` the best one.

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
        self.has_ended = False

    def go_on(self) -> None:
        """Compare with the model that an earlier process has kept: no worse one replaces it."""
        tested = self._actions.kept()
        if tested is None:
            return
        self._contest.take(_values(tested))
        self.best = _entry(tested)
        self._say(f"goes on with the model in --save as the best one: {tested.text()}")

    def after(self, epoch: int, following: int | None, step: int) -> None:
        """Validate after step number `step`, of `epoch`, if that is due.

        `following` is the epoch of the next step, None = there is none.
        """
        if self._due.after(epoch, following):
            with self._actions.pause():
                self._validate(epoch, step, is_last=following is None)

    def _validate(self, epoch: int, step: int, is_last: bool) -> None:
        tested = self._actions.test()
        standing = self._contest.take(_values(tested))
        self.history.append(_entry(tested, epoch, step))
        self._record(self.history[-1])
        note = "  best so far" if standing.is_best else ""
        self._say(f"validation  {tested.examples:,} examples  {tested.text()}{note}")
        if standing.is_best:
            self.best = self.history[-1]
            if self._actions.keep is not None:
                self._actions.keep()
        if standing.ends and not is_last:
            self._end()

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
