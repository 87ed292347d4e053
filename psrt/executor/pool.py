"""A walk along a graph by a pool of threads, with BLAS held back and errors given their names."""

from __future__ import annotations

from collections.abc import Sequence

from threadpoolctl import ThreadpoolController

from psrt.core.errors import ProgramError, PsrtError
from psrt.executor.profile import Profiler, span_of
from psrt.executor.replicas import Replica
from psrt.executor.schedule import Schedule
from psrt.executor.ssa import Graph
from psrt.executor.workers import Execute, Waiting, Workers


class Pool:
    """`threads` threads that run the nodes of graphs."""

    def __init__(self, threads: int, spin_s: float) -> None:
        self._workers = Workers(threads, spin_s)
        self._blas = ThreadpoolController()

    def walk(self, graph: Graph, replicas: Sequence[Replica], profiler: Profiler | None) -> None:
        """Run every node; raises the first error, told by the replica it happened in.

        BLAS runs in one thread each: the pool keeps the cores busy, and more would fight.
        """
        schedule = Schedule(graph)
        with self._blas.limit(limits=1, user_api="blas"):
            self._workers.walk(schedule, _executing(graph, profiler), _waiting(profiler))
        if schedule.failure is None:
            return
        at, error = schedule.failure
        node = graph.nodes[at]
        if not isinstance(error, Exception) or (node.op is None and isinstance(error, PsrtError)):
            raise error  # Ctrl-C, or told well already
        if node.op is None:
            raise ProgramError(f"The step failed in {node}: {error!r}.") from error
        raise replicas[node.replica].compiled.failure(node.op, error) from error

    def close(self) -> None:
        self._workers.close()


def _executing(graph: Graph, profiler: Profiler | None) -> Execute:
    runs = [node.run for node in graph.nodes]
    if profiler is None:
        return lambda at: runs[at]()

    def profiled(at: int) -> None:
        node, started_ns = graph.nodes[at], profiler.clock_ns()
        node.run()
        if node.op is not None:
            profiler.record(node.op, started_ns, profiler.clock_ns(), node.replica)

    return profiled


def _waiting(profiler: Profiler | None) -> Waiting:
    return lambda: span_of(profiler, "other threads", "wait")
