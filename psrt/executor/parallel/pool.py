"""A walk by a pool of threads, with BLAS limited and errors that name the op."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from threadpoolctl import ThreadpoolController

from psrt.core.errors import ProgramError, PsrtError
from psrt.executor.compute import StepSequence
from psrt.executor.parallel.replicas import Replica
from psrt.executor.parallel.schedule import Schedule
from psrt.executor.parallel.ssa import SsaGraph, SsaNode
from psrt.executor.parallel.workers import Waiting, Workers
from psrt.executor.profiling import Profiler, span_of
from psrt.kernels.lowlevel import thread_counts


class Pool:
    """`threads` threads that run nodes of graphs, until `close` or until nobody holds the pool."""

    def __init__(self, threads: int, spin_s: float) -> None:
        self._workers = Workers(threads, spin_s)
        weakref.finalize(self, self._workers.close)
        self._blas, self._thread_counts = ThreadpoolController(), thread_counts()

    def walk(self, graph: SsaGraph, replicas: Sequence[Replica], profiler: Profiler | None) -> None:
        """Run every node; raises the first error, which names op and layer.

        BLAS runs single-threaded in each thread, since the pool keeps the cores busy.
        """
        schedule = Schedule(graph)
        under_way = UnderWay(schedule, profiler)
        with self._one_blas_thread():
            self._workers.walk(schedule, under_way.execute, _waiting(profiler))
        if schedule.failure is None:
            return
        at, error = schedule.failure
        node = under_way.node(at)
        if not isinstance(error, Exception) or (node.op is None and isinstance(error, PsrtError)):
            raise error  # Ctrl-C, or an error with a complete message
        if node.op is None:
            raise ProgramError(f"The step failed in {node}: {error!r}.") from error
        raise replicas[node.replica].compiled.failure(node.op, error) from error

    def close(self) -> None:
        self._workers.close()

    def _one_blas_thread(self) -> AbstractContextManager[object]:
        """Limits BLAS, unless it is limited already: reading takes a hundredth of setting."""
        if all(count() == 1 for count in self._thread_counts):
            return nullcontext()
        limit: AbstractContextManager[object] = self._blas.limit(limits=1, user_api="blas")
        return limit


class UnderWay:
    """Runs nodes part by part, and records the part of a node that was begun last.

    Consecutive parts that record commands are one call, unless a profiler measures each. No part
    begins after the failure of another node has stopped the walk.
    """

    def __init__(self, schedule: Schedule, profiler: Profiler | None) -> None:
        self._schedule, self._profiler = schedule, profiler
        self._parts = [node.parts or (node,) for node in schedule.graph.nodes]
        self._begun = [0] * len(self._parts)

    def execute(self, at: int) -> None:
        sequence = StepSequence()
        for number, part in enumerate(self._parts[at]):
            if self._schedule.is_stopped:
                break
            self._begun[at] = number
            if self._profiler is None:
                sequence.run(part.run)
            else:
                self._run_profiled(part, self._profiler)
        sequence.end()

    def node(self, at: int) -> SsaNode:
        """The part of node `at` that was begun last."""
        return self._parts[at][self._begun[at]]

    def _run_profiled(self, node: SsaNode, profiler: Profiler) -> None:
        if node.op is None:
            node.run()
            return
        started_ns = profiler.clock_ns()
        node.run()
        profiler.record(node.op, started_ns, profiler.clock_ns(), node.replica)


def _waiting(profiler: Profiler | None) -> Waiting:
    return lambda: span_of(profiler, "other threads", "wait")
