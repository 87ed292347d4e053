"""Those who watch a trainer: a service manager, and readers of its pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from psrt.communicator.base import Communicator
from psrt.core.service_manager import ServiceReporter
from psrt.trainer.observing.metrics import TrainerPages, WatchedTraining
from psrt.trainer.observing.spans import SpanRecorders, SpanTimes


class Watchers:
    """Passes the begin of trainings to those who watch; by default nobody does."""

    def __init__(
        self, reporter: ServiceReporter | None = None, pages: TrainerPages | None = None
    ) -> None:
        self._reporter, self._pages = reporter or ServiceReporter(), pages

    def begin(
        self,
        labels: tuple[str, str, str],
        spans: SpanRecorders,
        communicator: Communicator,
        numbers: Callable[[], Mapping[str, float | None]],
    ) -> None:
        """Show a training from now on; its spans are timed only if there are pages."""
        if self._pages is not None:
            spans.times = SpanTimes()
            self._pages.watch(WatchedTraining(labels, spans.times, communicator, numbers))

    def ready(self, describe: Callable[[], str]) -> None:
        """Report that steps are taken; `describe` returns progress, or raises."""
        self._reporter.ready(describe)
        if self._pages is not None:
            self._pages.set_ready(True)


_of_script = Watchers()


def watchers_of_script() -> Watchers:
    """Those who watch the script that this process runs."""
    return _of_script


@contextmanager
def observed_script(metrics: str) -> Iterator[None]:
    """Pages at `metrics` for the executors of a script inside the block, unless it is empty."""
    global _of_script
    with observed(metrics, ServiceReporter()) as watchers:
        before, _of_script = _of_script, watchers
        try:
            yield
        finally:
            _of_script = before


@contextmanager
def observed(metrics: str, reporter: ServiceReporter) -> Iterator[Watchers]:
    """Watchers of a trainer with pages at `metrics` inside the block, unless it is empty."""
    if not metrics:
        yield Watchers(reporter)
        return
    with TrainerPages(metrics) as pages:
        yield Watchers(reporter, pages)
