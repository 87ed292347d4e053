"""Means of dense gradients over all processes, reduced while backward goes on.

    offer(name, gradient)   copies into a bucket; a full one starts to travel at once
    start_all(...)          starts those that have not: all processes do so before any other call
    end()                   waits for all of them, and returns the means

Every process starts the buckets in one order, whatever the order of offers. The first bucket also
counts the processes that trained in this step, and those that go on: a process whose data have
ended takes part with zeros until nobody goes on, and counts in no mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from psrt.collective.buckets import Bucket, plan_buckets
from psrt.collective.group import TrainerGroup
from psrt.collective.staging import DeviceBuffer, HostBuffer, buffer
from psrt.core.types import F32, Array, Shape

_COUNTS = 2


@dataclass(frozen=True)
class StepCounts:
    """The numbers of processes that trained in a step, and that go on after it."""

    trained: int
    going_on: int


class GradientReducer:
    """The buckets of gradients of `shapes`, in the order in which backward makes them.

    A bucket has up to `bucket_bytes`. `new_buffer` makes the memory of one, for tests.
    """

    def __init__(
        self,
        group: TrainerGroup,
        shapes: Iterable[tuple[str, Shape]],
        bucket_bytes: int,
        new_buffer: Callable[[TrainerGroup, int], HostBuffer | DeviceBuffer] = buffer,
    ) -> None:
        shapes = list(shapes)
        sizes = [(name, int(np.prod(shape))) for name, shape in shapes]
        self.buckets = plan_buckets(sizes, max(1, bucket_bytes // 4))
        extra = [_COUNTS] + [0] * (len(self.buckets) - 1)
        sized = zip(self.buckets, extra, strict=True)
        self._buffers = [new_buffer(group, bucket.size + more) for bucket, more in sized]
        self._views = dict(_views(self.buckets, self._buffers, dict(shapes)))
        self._bucket_of = {n: i for i, bucket in enumerate(self.buckets) for n in bucket.names}
        self._counts = self._buffers[0].values[self.buckets[0].size :]
        self.size_bytes = sum(each.values.nbytes for each in self._buffers)
        self._begin_step()

    def offer(self, name: str, gradient: Array) -> None:
        """Take a final gradient; a second offer in the same step has no effect."""
        if name not in self._offered:
            self._offered.add(name)
            np.copyto(self._views[name], gradient)
            self._left[self._bucket_of[name]] -= 1
            self._start_full()

    def start_all(self, trained: bool, goes_on: bool) -> None:
        """Start every bucket; without `trained`, nothing may have been offered.

        Processes make their calls in one order, so this comes before the rows of a step.
        """
        if not trained:
            for each in self._buffers:
                each.values[:] = 0
            self._left = [0] * len(self.buckets)
        self._tell = trained, goes_on
        self._start_full()

    def end(self) -> tuple[StepCounts, dict[str, F32]]:
        """Return the counts of a step and the mean gradients of those that trained.

        The means stay until the next offer.
        """
        for each in self._buffers:
            each.end()
        tally = StepCounts(int(self._counts[0]), int(self._counts[1]))
        if tally.trained > 1:
            for each in self._buffers:
                each.values *= np.float32(1 / tally.trained)
        self._begin_step()
        return tally, self._views

    def _begin_step(self) -> None:
        self._left = [len(bucket.names) for bucket in self.buckets]
        self._offered: set[str] = set()
        self._started = 0
        self._tell = True, True  # a process that has a gradient trains, and goes on

    def _start_full(self) -> None:
        """Start every bucket that is full and whose predecessors have started."""
        while self._started < len(self._buffers) and self._left[self._started] == 0:
            if self._started == 0:
                self._counts[:] = self._tell
            self._buffers[self._started].begin()
            self._started += 1


def _views(
    buckets: Iterable[Bucket],
    buffers: Iterable[HostBuffer | DeviceBuffer],
    shapes: dict[str, Shape],
) -> Iterable[tuple[str, F32]]:
    for bucket, memory in zip(buckets, buffers, strict=True):
        for name, start in zip(bucket.names, bucket.starts, strict=True):
            size = int(np.prod(shapes[name]))
            yield name, memory.values[start : start + size].reshape(shapes[name])


__all__ = ["GradientReducer", "StepCounts"]
