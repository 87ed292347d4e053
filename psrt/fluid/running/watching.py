"""`debug=True` of `train_from_dataset`: op times, share of reading, examples per second."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from psrt.data.slots import batch_rows
from psrt.executor.profiling import Profiler
from psrt.fluid.running.runs import Run
from psrt.fluid.running.values import Batch, OnStep

_SHOWN_OPS = 50


def run_watched(run: Run, feeds: Iterable[Batch], fetch: Sequence[str], on_step: OnStep) -> str:
    """Call `run.run_from`; returns the table of its ops and a line on reading and speed."""
    profiler = Profiler()
    reading = _Reading(feeds, profiler.clock_ns)
    run.watch(profiler, fetch)
    started_ns = profiler.clock_ns()
    try:
        run.run_from(reading, fetch, on_step)
    finally:
        run.watch(None, fetch)
    return f"{profiler.table(_SHOWN_OPS)}\n{reading.summary(profiler.clock_ns() - started_ns)}"


class _Reading:
    """Feeds, with the time reading them took; a trainer of a cluster reads in a thread."""

    def __init__(self, feeds: Iterable[Batch], clock_ns: Callable[[], int]) -> None:
        self._feeds, self._clock_ns = feeds, clock_ns
        self._examples = self._spent_ns = 0

    def __iter__(self) -> Iterator[Batch]:
        feeds = iter(self._feeds)
        while True:
            started_ns = self._clock_ns()
            feed = next(feeds, None)
            self._spent_ns += self._clock_ns() - started_ns
            if feed is None:
                return
            self._examples += batch_rows(feed)
            yield feed

    def summary(self, whole_ns: int) -> str:
        share, rate = self._spent_ns / whole_ns, self._examples / whole_ns * 1e9
        return (
            f"reading took {100 * share:.1f} % of {whole_ns / 1e9:.2f} s; "
            f"{self._examples:,} examples, {rate:,.0f} a second"
        )
