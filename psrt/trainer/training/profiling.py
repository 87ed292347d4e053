"""A training under the profiler: which stops of a step it sees, and what is said at the end.

    step            one turn of the loop; what is not named below reads results and counts
      feed          the loop waits for the next batch, which the thread `prepare` makes
      prefetch      the rows of the next batch are asked for
      run           the executor: ops, and the Python between them
      push-pull     gradients go up; parameters and rows come down

The loop knows nothing of this: its partners are wrapped, and only when a profile was asked for. The
communicator tells by itself what its threads do beside the steps.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol

from psrt.communicator.base import Gradient, Gradients, Pulled, Timeline
from psrt.config.schema import TrainerConfig
from psrt.core.types import F32, I64
from psrt.executor.profiling import Category, Profiler
from psrt.trainer.inputs import Outputs, PreparedBatch
from psrt.trainer.training.loop import Exchange, Loop, Parameters, Steps
from psrt.trainer.training.progress import Progress
from psrt.trainer.training.workshop import Say

Batches = Generator[PreparedBatch, None, None]


class Profilable(Protocol):
    """The part of an executor a profile is attached to."""

    profiler: Profiler | None


class Watchable(Protocol):
    """The part of a communicator a profile is attached to."""

    def watch(self, timeline: Timeline | None) -> None: ...


class Training:
    """Makes the parts of a training, without a profiler."""

    def batches(self, source: Batches) -> Batches:
        return source

    def loop(
        self,
        executor: Steps,
        scope: Parameters,
        exchange: Exchange,
        outputs: Outputs,
        progress: Progress,
    ) -> Loop:
        return Loop(executor, scope, exchange, outputs, progress)


class ProfiledTraining(Training):
    """The same parts, each telling `profiler` what it does; `waits` is what an exchange is."""

    def __init__(self, profiler: Profiler, waits: Category) -> None:
        self._profiler, self._waits = profiler, waits

    def batches(self, source: Batches) -> Batches:
        """Closes `source` when it is closed."""
        with closing(source):
            yield from _spanned(source, self._profiler, "prepare")

    def loop(
        self,
        executor: Steps,
        scope: Parameters,
        exchange: Exchange,
        outputs: Outputs,
        progress: Progress,
    ) -> Loop:
        watched = _ProfiledExchange(exchange, self._profiler, self._waits)
        return _ProfiledLoop(self._profiler, executor, scope, watched, outputs, progress)


@contextmanager
def training(
    settings: TrainerConfig, executor: Profilable, communicator: Watchable, say: Say
) -> Iterator[Training]:
    """What makes the parts of a training; with --profile, writes and tells the profile after it."""
    if not settings.profile:
        yield Training()
        return
    profiler = executor.profiler = Profiler()
    communicator.watch(profiler)
    yield ProfiledTraining(profiler, "python" if settings.local else "communicate")
    executor.profiler = None
    communicator.watch(None)
    profiler.write_chrome_trace(Path(settings.profile), settings.trainer_id)
    say(profiler.table())
    say(f"profile: open {settings.profile} in ui.perfetto.dev or chrome://tracing")


class _ProfiledLoop(Loop):
    def __init__(
        self,
        profiler: Profiler,
        executor: Steps,
        scope: Parameters,
        exchange: Exchange,
        outputs: Outputs,
        progress: Progress,
    ) -> None:
        super().__init__(executor, scope, exchange, outputs, progress)
        self._profiler = profiler

    def run(self, batches: Iterator[PreparedBatch]) -> None:
        super().run(_spanned(batches, self._profiler, "feed"))

    def step(
        self, batch: PreparedBatch, rows: Mapping[str, F32], batches: Iterator[PreparedBatch]
    ) -> tuple[PreparedBatch | None, Mapping[str, F32]]:
        with self._profiler.span("step", "step"):
            return super().step(batch, rows, batches)


class _ProfiledExchange:
    def __init__(self, exchange: Exchange, profiler: Profiler, category: Category) -> None:
        self._exchange, self._profiler, self._category = exchange, profiler, category

    def pull_rows(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        with self._profiler.span("pull", self._category):
            return self._exchange.pull_rows(wanted)

    def begin(self, wanted: Mapping[str, I64]) -> None:
        with self._profiler.span("prefetch", self._category):
            self._exchange.begin(wanted)

    def offer(self, name: str, gradient: Gradient) -> None:
        self._exchange.offer(name, gradient)

    def finish(self, gradients: Gradients) -> Pulled:
        with self._profiler.span("push-pull", self._category):
            return self._exchange.finish(gradients)


def _spanned(items: Iterator[PreparedBatch], profiler: Profiler, name: str) -> Batches:
    """`items`, with the time each took to come."""
    while True:
        with profiler.span(name, "data"):
            item = next(items, None)
        if item is None:
            return
        yield item
