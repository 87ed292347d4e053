"""Running batches until the data end: in order, or by Hogwild replicas.

With `async_mode` every replica takes whole batches from one source and runs them over shared
parameters and optimizer state without a lock (Niu et al. 2011, "Hogwild!"): updates may overwrite
each other, which sparse ones seldom do, and results depend on timing. Only the first replica's
fetches are returned. The first error stops all replicas after their current batch.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from psrt.executor.memory import RowSupply, Scope
from psrt.executor.parallel.replicas import Replica
from psrt.executor.parallel.shares import BatchShare, examples_of
from psrt.executor.ports import GradSink, ParamSource
from psrt.executor.program import DerivedIds, Feed, copy_of
from psrt.graph.program import ROLES, Program, Role


@dataclass
class EpochResult:
    """Batches and examples run until the data ended; `fetched` are the values of the last batch."""

    batches: int = 0
    examples: int = 0
    fetched: list[Any] = field(default_factory=list)

    def count(self, examples: int, fetched: list[Any]) -> None:
        self.batches += 1
        self.examples += examples
        self.fetched = fetched


def total(parts: Sequence[EpochResult]) -> EpochResult:
    """The sum over several replicas, with the fetched values of the first."""
    batches, examples = sum(p.batches for p in parts), sum(p.examples for p in parts)
    return EpochResult(batches, examples, parts[0].fetched)


class BatchSource:
    """Numbered batches for several threads, until they end or a thread calls `stop`."""

    def __init__(self, batches: Iterable[Feed]) -> None:
        self._numbered = zip(itertools.count(), batches, strict=False)
        self._lock = threading.Lock()
        self._stopped = False
        self._failure: Exception | None = None

    def __iter__(self) -> Iterator[tuple[int, Feed]]:
        while (found := self._next()) is not None:
            yield found

    def stop(self) -> None:
        self._stopped = True

    def check(self) -> None:
        """Raise the error of the batch iterable, if one ended it."""
        if self._failure is not None:
            raise self._failure

    def _next(self) -> tuple[int, Feed] | None:
        with self._lock:
            try:
                return None if self._stopped else next(self._numbered, None)
            except Exception as error:
                self._failure, self._stopped = error, True
                return None


def hogwild_workers(replicas: Sequence[Replica], *shared: Any) -> list[HogwildWorker]:
    """One worker for each replica, over one optimizer state; `shared` as in `HogwildWorker`."""
    first, *others = replicas
    for replica in others:
        replica.share_updates(first)
    return [HogwildWorker(replica, *shared) for replica in replicas]


class HogwildWorker:
    """One replica that runs whole batches independently."""

    def __init__(
        self,
        replica: Replica,
        program: Program,
        scope: Scope,
        source: ParamSource | None,
        sink: GradSink | None,
        first_example: int,
    ) -> None:
        self._replica, self._scope, self._sink = replica, scope, sink
        self._supply = RowSupply(program, scope, source)
        self._first_example = first_example
        self._derived = DerivedIds(program, first_example)
        self.done = EpochResult()

    def working(
        self, source: BatchSource, names: Sequence[str], roles: Sequence[Role]
    ) -> Callable[[], None]:
        """The function that a thread of the pool runs."""

        def run() -> None:
            try:
                for number, feed in source:
                    self._step(number, feed, names, roles)
            except BaseException:
                source.stop()
                raise

        return run

    def _step(self, number: int, feed: Feed, names: Sequence[str], roles: Sequence[Role]) -> None:
        compiled = self._replica.compiled
        examples = examples_of(feed, self._replica.fed)
        context = compiled.context
        context.step, context.first_example, context.loss_gradient = (
            number,
            self._first_example,
            1.0,
        )
        feed = self._replica.checked(self._derived.extend(feed, number))
        rows = {table: self._supply.batch(table, feed) for table in self._supply.tables}
        self._replica.bind_scope(self._scope, roles)
        self._replica.load(BatchShare(0, 0, examples, examples), feed, rows, self._scope)
        if self._sink is not None:
            compiled.swap_gradients()
        for role in ROLES:
            if role in roles or (role == "clip_and_decay" and "backward" in roles):
                compiled.run(role)
        if self._sink is not None and "backward" in roles:
            self._sink.push(compiled.gradients())
        self.done.count(examples, [copy_of(compiled.cells[name]) for name in names])
