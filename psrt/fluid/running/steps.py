"""The steps of one call of an executor, and the profiler that records them if there is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from psrt.executor.profiling import Profiler
from psrt.fluid.running.runs import Run
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
        _run(run, next_batch(), (), True)
    return _run(run, next_batch(), fetch, merged)


def _run(run: Run, batch: Batch, fetch: Sequence[str], merged: bool) -> list[Any]:
    if profiler is None:
        return run.run(batch, fetch, merged)
    run.watch(profiler, fetch)
    try:
        return run.run(batch, fetch, merged)
    finally:
        run.watch(None, fetch)
