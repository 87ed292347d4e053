"""A training under the profiler: the trace file and the table at its end.

    step            one turn of the loop; what is not named below reads results and counts
      feed          the loop waits for the next batch, which the thread `prepare` makes
      prefetch      the rows of the next batch are asked for
      run           the executor: ops, and the Python between them
      push-pull     gradients go up; parameters and rows come down

`TrainingRun` records these stops, and the communicator what its threads do meanwhile.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from psrt.config.sections import TrainerConfig
from psrt.executor.profiling import Profiler
from psrt.trainer.inputs import PreparedBatch
from psrt.trainer.training import Say, TrainingRun


@contextmanager
def profiled(settings: TrainerConfig, run: TrainingRun, say: Say) -> Iterator[None]:
    """Profile the steps inside if --profile asks for it; then write the trace, print the table."""
    if not settings.profile:
        yield
        return
    profiler = run.profiler = Profiler()
    yield
    run.profiler = None
    profiler.write_chrome_trace(Path(settings.profile), settings.trainer_id)
    say(profiler.table())
    say(f"profile: open {settings.profile} in ui.perfetto.dev or chrome://tracing")


def spanned(
    batches: Generator[PreparedBatch, None, None], profiler: Profiler | None
) -> Generator[PreparedBatch, None, None]:
    """Batches as they are; with a profiler, each a span of the thread that makes it."""
    if profiler is None:
        yield from batches
        return
    with closing(batches):
        while True:
            with profiler.span("prepare", "data"):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch
