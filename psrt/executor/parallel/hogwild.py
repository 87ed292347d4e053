"""Replicas that do not wait for each other.

With `async_mode` every replica takes whole batches from one source and runs them over shared
parameters and optimizer state without a lock (Niu et al. 2011, "Hogwild!"): updates may overwrite
each other, which sparse ones seldom do, and results depend on timing. The fetches of the last batch
are returned. The first error stops all replicas after their current batch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from psrt.executor.memory import RowSupply, Scope
from psrt.executor.parallel.epoch import EpochResult
from psrt.executor.parallel.pool import Pool
from psrt.executor.parallel.replicas import Replica
from psrt.executor.parallel.shares import BatchShare, examples_of
from psrt.executor.parallel.ssa import SsaGraph, SsaNode
from psrt.executor.ports import GradSink, ParamSource
from psrt.executor.program import DerivedIds, Feed, copy_of
from psrt.graph.program import ROLES, Program, Role


class BatchSource:
    """Batches numbered from `begin`, for several threads, until they end or one calls `stop`."""

    def __init__(self, batches: Iterable[Feed], begin: int = 0) -> None:
        self._batches, self.next_number = iter(batches), begin
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
            if self._stopped:
                return None
            try:
                batch = next(self._batches)
            except StopIteration:
                return None
            except Exception as error:
                self._failure, self._stopped = error, True
                return None
            self.next_number += 1
            return self.next_number - 1, batch


def hogwild_workers(replicas: Sequence[Replica], *shared: Any) -> list[HogwildWorker]:
    """One worker for each replica, over one optimizer state; `shared` as in `HogwildWorker`."""
    first, *others = replicas
    for replica in others:
        replica.share_updates(first)
    return [HogwildWorker(replica, *shared) for replica in replicas]


def run_hogwild(
    workers: Sequence[HogwildWorker],
    pool: Pool,
    source: BatchSource,
    names: Sequence[str],
    roles: Sequence[Role],
) -> EpochResult:
    """Run batches until the source ends, a graph node for each worker.

    Returns what all have run, with the values of `names` in the last batch.
    """
    nodes = [
        SsaNode("the batches", worker.working(source, names, roles), replica=number)
        for number, worker in enumerate(workers)
    ]
    replicas = [worker.replica for worker in workers]
    pool.walk(SsaGraph.of(nodes), replicas, replicas[0].compiled.profiler)
    source.check()
    parts = [worker.done for worker in workers]
    last = max(workers, key=lambda worker: worker.last_number).done
    return EpochResult(
        sum(part.batches for part in parts), sum(part.examples for part in parts), last.fetched
    )


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
        self.replica, self._scope, self._sink = replica, scope, sink
        self._supply = RowSupply(program, scope, source)
        self._first_example = first_example
        self._derived = DerivedIds(program, first_example)
        self.done, self.last_number = EpochResult(), -1

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
        compiled = self.replica.compiled
        examples = examples_of(feed, self.replica.fed)
        context = compiled.context
        context.step, context.first_example, context.loss_gradient = (
            number,
            self._first_example,
            1.0,
        )
        feed = self.replica.checked(self._derived.extend(feed, number))
        rows = {table: self._supply.batch(table, feed) for table in self._supply.tables}
        self.replica.bind_scope(self._scope, roles)
        self.replica.load(BatchShare(0, 0, examples, examples), feed, rows, self._scope)
        if self._sink is not None:
            compiled.swap_gradients()
        for role in ROLES:
            if role in roles or (role == "clip_and_decay" and "backward" in roles):
                compiled.run(role)
        if self._sink is not None and "backward" in roles:
            self._sink.push(compiled.gradients())
        self.done.count(examples, [copy_of(compiled.cells[name]) for name in names])
        self.last_number = number
