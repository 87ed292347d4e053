"""`fluid.profiler`: times of the ops that runs between start and stop compute.

    with fluid.profiler.profiler("CPU", "total"):
        for feed in feeds:
            exe.run(feed=feed)

At the end it prints psrt's table of ops, and writes a timeline in Chrome's format to
`profile_path`. States and sort keys of Fluid are accepted, without effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from psrt.executor.profiling import Profiler
from psrt.fluid.names import no_cuda
from psrt.fluid.running import steps

_SHOWN_OPS = 50


def start_profiler(state: str = "All", tracer_option: str = "Default") -> None:
    """Begin to record the ops of later runs; without effect if it has begun."""
    steps.profiler = steps.profiler or Profiler()


def stop_profiler(sorted_key: str | None = None, profile_path: str | None = None) -> None:
    """End the recording, and print the table; without effect if none has begun."""
    ended, steps.profiler = steps.profiler, None
    if ended is None:
        return
    print(ended.table(_SHOWN_OPS))
    if profile_path is not None:
        ended.write_chrome_trace(Path(profile_path))


def reset_profiler() -> None:
    """Forget what was recorded so far."""
    if steps.profiler is not None:
        steps.profiler = Profiler()


@contextmanager
def profiler(
    state: str = "All",
    sorted_key: str | None = None,
    profile_path: str | None = None,
    tracer_option: str = "Default",
) -> Iterator[None]:
    """Record the ops of the runs in the block, then print the table."""
    start_profiler(state, tracer_option)
    try:
        yield
    finally:
        stop_profiler(sorted_key, profile_path)


def cuda_profiler(*arguments: object, **options: object) -> NoReturn:
    """Raise `ConfigError`: psrt computes on CPUs."""
    raise no_cuda("fluid.profiler.cuda_profiler")


__all__ = ["cuda_profiler", "profiler", "reset_profiler", "start_profiler", "stop_profiler"]
