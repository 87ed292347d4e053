"""The pages of a trainer, read from its counts when asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from psrt.communicator.base import Communicator
from psrt.core.process import process_facts
from psrt.core.threads import CrashReport
from psrt.observe.catalogue import OF_PROCESSES, OF_TRAINERS
from psrt.observe.durations import Histogram
from psrt.observe.metric_page import MetricPage
from psrt.observe.observation import Observation
from psrt.trainer.observing.spans import SpanTimes

_CALLS = {
    "pull rows": "pull_rows",
    "pull dense": "pull_dense",
    "push": "push",
    "exchange": "exchange",
    "meet": "meet",
}
_WAITS = {"data": ("feed",), "pservers": ("prefetch", "pull", "push-pull")}
_COUNTED_WAITS = {"queue": "queue_s", "trainers": "gate_s"}
_COUNTERS = {
    "psrt_trainer_pushed_bytes_total": "push_bytes",
    "psrt_trainer_pulled_bytes_total": "pull_bytes",
}


@dataclass(frozen=True)
class WatchedTraining:
    """A training that tells its numbers, on any thread.

    `labels` are job, mode and number of the trainer; `numbers` returns steps, examples, epoch, and
    the loss and AUC of the last steps, None = unknown.
    """

    labels: tuple[str, str, str]
    times: SpanTimes
    communicator: Communicator
    numbers: Callable[[], Mapping[str, float | None]]


class TrainerPages:
    """Pages of one trainer process, which may train several times: `watch` each training.

    A context manager that closes.
    """

    def __init__(self, address: str) -> None:
        """Serve at `address`; raises what `HttpServer` raises."""
        self._training: WatchedTraining | None = None
        specs = *OF_PROCESSES, *OF_TRAINERS
        self._pages = Observation("trainer", specs, self._fill, self._status, CrashReport())
        self.endpoint = self._pages.start(address)

    def watch(self, training: WatchedTraining) -> None:
        """Show the numbers of this training from now on."""
        self._training = training

    def set_ready(self, is_ready: bool) -> None:
        self._pages.set_ready(is_ready)

    def __enter__(self) -> TrainerPages:
        return self

    def __exit__(self, *ended: object) -> None:
        self._pages.close()

    def _fill(self, page: MetricPage) -> None:
        page.add("psrt_trainer_ready", self._pages.is_ready)
        if self._training is not None:
            page.add("psrt_trainer_info", 1, *self._training.labels)
            _add_progress(page, self._training.numbers())
            _add_communication(page, self._training.communicator)
            _add_times(page, self._training)

    def _status(self) -> dict[str, Any]:
        facts = {**process_facts(), "ready": self._pages.is_ready}
        if self._training is None:
            return facts
        job, mode, trainer = self._training.labels
        counters = self._training.communicator.counters.snapshot()
        numbers = self._training.numbers()
        return {
            **facts,
            "job": job,
            "mode": mode,
            "trainer": int(trainer),
            **numbers,
            "counters": counters,
        }


def _add_progress(page: MetricPage, numbers: Mapping[str, float | None]) -> None:
    for name in ("steps", "examples"):
        page.add(f"psrt_trainer_{name}_total", numbers[name] or 0)
    for name in ("epoch", "loss", "auc"):
        if (value := numbers[name]) is not None:
            page.add(f"psrt_trainer_{name}", value)


def _add_communication(page: MetricPage, communicator: Communicator) -> None:
    counters, backlog = communicator.counters.snapshot(), communicator.backlog()
    for name, counter in _COUNTERS.items():
        page.add(name, counters.get(counter, 0))
    for on, counter in _COUNTED_WAITS.items():
        if counter in counters:
            page.add("psrt_trainer_wait_seconds_total", counters[counter], on)
    page.add("psrt_trainer_queued_gradients", backlog.gradients)
    page.add("psrt_trainer_staleness_steps", backlog.steps)
    page.add("psrt_trainer_durable_lag_pushes", backlog.pushes)
    page.add("psrt_trainer_retained_bytes", backlog.push_bytes)


def _add_times(page: MetricPage, training: WatchedTraining) -> None:
    totals = training.times.durations.totals()
    page.duration("psrt_trainer_step_duration_seconds", totals.get("step", Histogram()))
    calls = {label: totals[name] for name, label in _CALLS.items() if name in totals}
    page.durations("psrt_trainer_call_duration_seconds", calls)
    for on, names in _WAITS.items():
        waited_s = sum(totals[name].sum_s for name in names if name in totals)
        page.add("psrt_trainer_wait_seconds_total", waited_s, on)
