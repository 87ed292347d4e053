"""One walk along a graph: nodes that may start, given those that are done.

Pure decisions: no thread, no lock, no clock. The caller holds a lock and runs the nodes. The first
failure wins: after it nothing starts, and the walk is over once nothing runs.
"""

from __future__ import annotations

from bisect import insort

from psrt.executor.parallel.ssa import SsaGraph


class Schedule:
    """`take` a node, run it, report `done` or `failed`, until `is_over`.

    A node is waiting, ready, running or done. `failure` implies that no node becomes running.
    """

    def __init__(self, graph: SsaGraph) -> None:
        self.graph = graph
        self.failure: tuple[int, BaseException] | None = None
        self.running: set[int] = set()
        self._waits = list(graph.waits)
        self._replicas = [node.place for node in graph.nodes]
        self._home_after: dict[int, int] = {}  # of the thread that took a node
        self._ready: dict[int, list[int]] = {}
        for node, count in enumerate(graph.waits):
            if count == 0:
                self._make_ready(node)
        self._left = len(graph.nodes)
        self._abandoned = False

    def take(self, after: int | None = None) -> int | None:
        """A node to run now, by the thread that ran `after`; None if none is ready.

        A thread stays with its replica, in listed order, so that its inputs are in its cache. From
        the replica of another thread it takes the node which that thread would take last, and then
        returns to its own.
        """
        if not self._ready or self.is_stopped:
            return None
        home = self._home_after.get(after) if after is not None else None
        replica, is_free = self._choose(home)
        queue = self._ready[replica]
        node = queue.pop(0 if is_free else -1)
        if not queue:
            del self._ready[replica]
        self.running.add(node)
        self._home_after[node] = replica if is_free or home is None else home
        return node

    def _choose(self, home: int | None) -> tuple[int, bool]:
        """A replica that has a ready node, and whether no other thread is running it."""
        if home is not None and home in self._ready:
            return home, True
        busy = {self._replicas[node] for node in self.running}
        for replica in self._ready:
            if replica not in busy:
                return replica, True
        return next(iter(self._ready)), False

    def done(self, node: int) -> None:
        self.running.remove(node)
        self._left -= 1
        for successor in self.graph.successors[node]:
            self._waits[successor] -= 1
            if self._waits[successor] == 0:
                self._make_ready(successor)

    def failed(self, node: int, error: BaseException) -> None:
        self.running.remove(node)
        if self.failure is None:
            self.failure = (node, error)

    def abandon(self) -> None:
        """Drop the nodes that have not started."""
        self._ready.clear()
        self._abandoned = True

    @property
    def ready(self) -> int:
        """The number of nodes that can be taken."""
        return 0 if self.is_stopped else sum([len(queue) for queue in self._ready.values()])

    @property
    def is_over(self) -> bool:
        return not self.running and (self.is_stopped or self._left == 0)

    def _make_ready(self, node: int) -> None:
        insort(self._ready.setdefault(self._replicas[node], []), node)

    @property
    def is_stopped(self) -> bool:
        return self._abandoned or self.failure is not None
