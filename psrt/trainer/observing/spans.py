"""Times of steps, of their waits and of calls to pservers, for those that record them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from psrt.executor.profiling import Category, Profiler
from psrt.observe.durations import Durations

_NO_SPAN = nullcontext()


class SpanTimes:
    """Durations of spans by name; recorded on any thread, read on any other."""

    def __init__(self) -> None:
        self.durations = Durations()

    def span(self, name: str, category: Category = "python") -> AbstractContextManager[None]:
        """A context manager that counts the seconds of its block."""
        return _Timed(self.durations, name)


class _Timed:
    __slots__ = ("_durations", "_name", "_started_s")

    def __init__(self, durations: Durations, name: str) -> None:
        self._durations, self._name = durations, name

    def __enter__(self) -> None:
        self._started_s = time.perf_counter()

    def __exit__(self, *ended: object) -> None:
        self._durations.add(self._name, time.perf_counter() - self._started_s)


class SpanRecorders:
    """Passes each span to the profiler and to `times`, where they are set."""

    def __init__(self) -> None:
        self.profiler: Profiler | None = None
        self.times: SpanTimes | None = None

    def timed_step(self) -> AbstractContextManager[None]:
        """A context manager that times a step of a caller's own loop, but for the profiler."""
        return _NO_SPAN if self.times is None else self.times.span("step")

    def or_none(self) -> SpanRecorders | None:
        """This object, or None if nobody records."""
        return None if self.profiler is None and self.times is None else self

    def span(self, name: str, category: Category = "python") -> AbstractContextManager[None]:
        """A context manager that records its block."""
        if self.profiler is None:
            return _NO_SPAN if self.times is None else self.times.span(name, category)
        profiled = self.profiler.span(name, category)
        return profiled if self.times is None else _both(profiled, self.times.span(name, category))


@contextmanager
def _both(
    first: AbstractContextManager[None], second: AbstractContextManager[None]
) -> Iterator[None]:
    with first, second:
        yield
