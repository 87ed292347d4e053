"""The training step, and how one step's communication hides behind the next one's compute.

    batch k:   begin(wanted of k+1)          asynchronous modes start to pull those rows now
               run forward and backward of k on the rows bound for k
               offer(a gradient of k)        as soon as it is final; those modes may send it already
               finish(gradients of k)        synchronous mode: push, round, pull, in one exchange
               dense values that came back replace those in the scope
               rows that came back are bound for k+1

The loop runs in the main thread and knows its partners only by the small protocols below, so that
tests drive it with fakes. It ends after the last batch, or after the step during which `stop` was
set; it never tells the pservers that the trainer is done, which is the session's business.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from psrt.communicator.base import Gradient, Gradients, Pulled
from psrt.core.types import F32, I64, Array
from psrt.executor.memory import RowBatch
from psrt.executor.ports import OnGradient
from psrt.trainer.inputs import Feed, Fetched, Outputs, PreparedBatch, bind, with_counts
from psrt.trainer.training.progress import Progress


class RowSource(Protocol):
    def pull_rows(self, wanted: Mapping[str, I64]) -> dict[str, F32]: ...


class Exchange(RowSource, Protocol):
    """The part of a communicator the loop uses."""

    def begin(self, wanted: Mapping[str, I64]) -> None: ...
    def offer(self, name: str, gradient: Gradient) -> None: ...
    def finish(self, gradients: Gradients) -> Pulled: ...


class Steps(Protocol):
    """The part of an executor the loop uses."""

    on_gradient: OnGradient | None

    def run(
        self, feed: Feed, fetch: Sequence[str], rows: Mapping[str, RowBatch]
    ) -> Sequence[Fetched]: ...
    def gradients(self) -> Gradients: ...


class Parameters(Protocol):
    """The part of a scope the loop uses."""

    def __setitem__(self, name: str, array: Array) -> None: ...


class Stepping:
    """An executor and the communicator its gradients go to: how one step is taken."""

    def __init__(self, executor: Steps, scope: Parameters, exchange: Exchange) -> None:
        self._executor, self._scope, self._exchange = executor, scope, exchange
        self._batch: PreparedBatch | None = None
        executor.on_gradient = self._offer

    def step(
        self,
        batch: PreparedBatch,
        rows: Mapping[str, F32],
        fetch: Sequence[str],
        following: PreparedBatch | None = None,
    ) -> tuple[Sequence[Fetched], Mapping[str, F32]]:
        """Train on `batch` with the `rows` it wants; returns what was fetched, and the rows that
        `following` wants, as far as that is known by now."""
        if following is not None:
            self._exchange.begin(following.wanted)
        self._batch = batch
        fetched = self._executor.run(batch.feed, fetch, bind(batch, rows))
        gradients = self._executor.gradients()
        counted = {name: self._counted(name, each) for name, each in gradients.items()}
        pulled = self._exchange.finish(counted)
        for name, values in pulled.dense.items():
            self._scope[name] = values
        return fetched, pulled.rows

    def _offer(self, name: str, gradient: Gradient) -> None:
        self._exchange.offer(name, self._counted(name, gradient))

    def _counted(self, name: str, gradient: Gradient) -> Gradient:
        """The gradient with the shows and clicks of its ids, if its table wants them."""
        batch = self._batch
        if batch is None or name not in batch.counts:
            return gradient
        return with_counts(gradient, batch.wanted[name], batch.counts[name])


class Loop:
    """Trains on prepared batches until they end or `stop` is set.

    `on_trained` is told each batch trained on, and the one that follows, None at the end.
    """

    def __init__(
        self,
        executor: Steps,
        scope: Parameters,
        exchange: Exchange,
        outputs: Outputs,
        progress: Progress,
    ) -> None:
        self._stepping, self._rows = Stepping(executor, scope, exchange), exchange
        self._outputs, self._progress = outputs, progress
        self.stop = threading.Event()
        self.on_trained: Callable[[PreparedBatch, PreparedBatch | None], None] | None = None

    def run(self, batches: Iterator[PreparedBatch]) -> None:
        current = next(batches, None)
        if current is None:
            return
        rows: Mapping[str, F32] = self._rows.pull_rows(current.wanted)
        self._progress.start()
        while current is not None and not self.stop.is_set():
            current, rows = self.step(current, rows, batches)
        self._progress.line()

    def step(
        self, batch: PreparedBatch, rows: Mapping[str, F32], batches: Iterator[PreparedBatch]
    ) -> tuple[PreparedBatch | None, Mapping[str, F32]]:
        """Train on `batch`; returns the batch that follows in `batches`, and the rows for it."""
        following = next(batches, None)
        fetched, rows = self._stepping.step(batch, rows, self._outputs.names, following)
        self._progress.step(batch.epoch, batch.examples, self._outputs.read(fetched))
        if self.on_trained is not None:
            self.on_trained(batch, following)
        return following, rows
