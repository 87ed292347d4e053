"""The steps of one call of an executor, and the profiler that records them if there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from psrt.executor.profiling import Profiler
from psrt.fluid.running.runs import ReplicatedRun, Run
from psrt.fluid.running.values import Batch

profiler: Profiler | None = None
"""The profiler of this process, which `fluid.profiler` begins and ends."""


def run_steps(
    run: Run, next_batch: Callable[[], Batch], steps: int, fetch: Sequence[str], merged: bool = True
) -> list[Any]:
    """Run so many batches; returns the values of `fetch` in the last step.

    What `next_batch` raises leaves the updates of the steps before it.
    """
    for _ in range(steps - 1):
        with _watched(run, ()):
            run.run(next_batch(), ())
    batch = next_batch()
    with _watched(run, fetch):
        return run.run(batch, fetch, merged)


def run_async(
    run: ReplicatedRun, batches: Iterable[Batch], fetch: Sequence[str], merged: bool = True
) -> list[Any]:
    """Run batches by replicas that do not wait for each other; returns the values of `fetch` in
    the last one.

    What `batches` raises leaves the updates of the batches before it.
    """
    with _watched(run, fetch):
        values = run.run_async(batches, fetch)
    return values if merged else [[value] for value in values]


@contextmanager
def _watched(run: Run, fetch: Sequence[str]) -> Iterator[None]:
    if profiler is None:
        yield
        return
    run.watch(profiler, fetch)
    try:
        yield
    finally:
        run.watch(None, fetch)
