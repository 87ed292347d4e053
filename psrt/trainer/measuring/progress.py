"""Counts steps and examples, prints one line every few seconds, and sums up the run.

    epoch 1/1  step 120  61,440 examples  38,120 ex/s  loss 0.4711  auc 0.7433  41 %, 0:52 left

Rate, loss and AUC of a line cover the steps since the previous line, so that a line shows the
present; the summary's loss and AUC cover the last epoch. Called by the training thread, except
`describe` and `numbers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from psrt.core.clock import Clock
from psrt.core.errors import DeadlineError
from psrt.core.quantities import counted
from psrt.data.sources import Place
from psrt.trainer.inputs import Measured
from psrt.trainer.measuring.done_share import as_duration
from psrt.trainer.measuring.metrics import Tally, number
from psrt.trainer.measuring.scored_rows import NEWEST, ScoredRows


class Progress:
    """Counts of one training; epochs count from 1.

    `share_at(epoch, place)` is the share of the training behind a place, 0 = unknown. `record` gets
    the numbers of each line.
    """

    def __init__(
        self,
        epochs: int,
        every_s: float,
        clock: Clock,
        write: Callable[[str], None],
        share_at: Callable[[int, Place], float] = lambda epoch, place: 0.0,
        record: Callable[[Mapping[str, Any]], None] = lambda numbers: None,
    ) -> None:
        self._record = record
        self._epochs, self._every_s, self._clock, self._write = epochs, every_s, clock, write
        self.steps = self.examples = self.skipped_steps = 0
        self._epoch = 0
        self._epoch_tally, self._line_tally, self._newest = Tally(), _of_line(), Tally()
        self._started_s = self._line_started_s = self._ended_s = clock.now()
        self._is_stepping = self._is_complete = False
        self._place: tuple[int, Place | None] = 1, None
        self._first: float | None = None  # the share that was done when this process began
        self._share_at = share_at

    def start(self) -> None:
        """Start the clock: the first batch and its rows have arrived."""
        self._started_s = self._line_started_s = self._ended_s = self._clock.now()
        self._is_stepping = True

    def end(self) -> None:
        """Print the last line: no step follows."""
        self._is_stepping = False
        self.line()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Count no time, and await no step, in this context."""
        was_stepping, self._is_stepping = self._is_stepping, False
        began_s = self._clock.now()
        try:
            yield
        finally:
            took_s = self._clock.now() - began_s
            self._started_s += took_s
            self._line_started_s += took_s
            self._ended_s += took_s
            self._is_stepping = was_stepping

    def describe(self, patience_s: float) -> str:
        """Return progress as text; raises `DeadlineError` if a step takes more than `patience_s`.

        Any thread may call this.
        """
        idle_s = self._clock.now() - self._ended_s
        if self._is_stepping and idle_s > patience_s:
            raise DeadlineError(
                f"no step has ended for {idle_s:.0f} s.",
                hint="See what the trainer waits for: psrt status, and psrt doctor --dump.",
            )
        return f"epoch {self._epoch}/{self._epochs}, step {self.steps}, {self.examples:,} examples"

    def step(
        self,
        epoch: int,
        examples: int,
        measured: Measured,
        place: Place | None = None,
        is_last: bool = False,
    ) -> None:
        """Count a step on a batch that ended at `place` in the data; the data may end with it."""
        self._place, self._is_complete = (epoch, place), is_last
        if self._first is None:
            self._first = self._share()
        if epoch != self._epoch:
            self._epoch, self._epoch_tally = epoch, Tally()
        self.steps += 1
        self.examples += examples
        self._ended_s = self._clock.now()
        for tally in (self._epoch_tally, self._line_tally):
            tally.update(measured, examples)
        if self._ended_s - self._line_started_s >= self._every_s:
            self.line()

    def skipped_step(self, is_last: bool = False) -> None:
        """Count a step that was left out: its loss or a gradient was not finite."""
        self._is_complete = is_last
        self.skipped_steps += 1
        self._ended_s = self._clock.now()

    def numbers(self) -> dict[str, float | None]:
        """Counts so far, loss and AUC of the last line; None = unknown. Any thread may call it."""
        return {
            "steps": self.steps,
            "examples": self.examples,
            "epoch": self._epoch or None,
            "loss": number(self._newest.loss.value()),
            "auc": number(self._newest.auc.value()),
        }

    @property
    def epoch_tally(self) -> Tally:
        """The sums of the running epoch."""
        return self._epoch_tally

    def tally_before(self, epoch: int) -> Tally:
        """A copy of the sums of this epoch up to its next step."""
        return Tally.of(self._epoch_tally.arrays()) if epoch == self._epoch else Tally()

    def go_on(self, epoch: int, tally: Tally) -> None:
        """Count on from the sums of an epoch that an earlier process began."""
        self._epoch, self._epoch_tally = epoch, tally

    def line(self) -> None:
        """Print the steps since the previous line, if there are any."""
        tally, seconds = self._line_tally, self._ended_s - self._line_started_s
        if not tally.examples:
            return
        left_out = self.skipped_steps
        skipped = f"  {counted(left_out, 'step')} left out" if left_out else ""
        metrics = tally.metrics
        rate = tally.examples / max(seconds, 1e-9)
        self._write(
            f"epoch {self._epoch}/{self._epochs}  step {self.steps}  {self.examples:,} examples"
            f"  {rate:,.0f} ex/s  {tally.text()}{skipped}{self._left()}"
        )
        self._line_started_s, self._line_tally, self._newest = self._ended_s, _of_line(), tally
        values = {name: number(value) for name, value in metrics.items()}
        numbers = {**self.numbers(), "examples_per_s": round(rate, 1)}
        self._record({"step": numbers.pop("steps"), **numbers, **values})

    def _share(self) -> float:
        """The share of the whole training that is done, 0 = unknown.

        Places are those of blocks of files, and short of the end after the last batch.
        """
        if self._is_complete:
            return 1.0
        epoch, place = self._place
        return 0.0 if place is None else self._share_at(epoch, place)

    def _left(self) -> str:
        """The share that is done and the time that the rest takes; empty if they are unknown."""
        done = self._share()
        made = done - (self._first or 0.0)
        if done <= 0:
            return ""
        percent = f"  {100 * done:.0f} %"
        if made <= 0 or done >= 1:
            return percent
        seconds = (self._ended_s - self._started_s) * (1 - done) / made
        return f"{percent}, {as_duration(seconds)} left"

    def summary(self) -> dict[str, Any]:
        """Return the numbers of the report; None for those not measured."""
        seconds, tally = self._ended_s - self._started_s, self._epoch_tally
        return {
            "steps": self.steps,
            "examples": self.examples,
            "skipped_steps": self.skipped_steps,
            "epochs": self._epoch,
            "seconds": seconds,
            "examples_per_s": self.examples / seconds if seconds > 0 else None,
            "loss": number(tally.loss.value()),
            "train_auc": number(tally.auc.value()),
            "metrics": {name: number(value) for name, value in tally.metrics.items()},
        }


def _of_line() -> Tally:
    """Sums of a progress line, with its newest examples."""
    return Tally(ScoredRows(NEWEST))
