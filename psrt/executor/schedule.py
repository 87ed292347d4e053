"""One walk along a graph: which nodes may start, given which are done.

Decides and does nothing else: no thread, no lock, no clock. Whoever calls holds a lock and runs the
nodes. The first failure wins: after it nothing starts, and the walk is over once nothing runs.
"""

from __future__ import annotations

from collections import deque

from psrt.executor.ssa import Graph


class Schedule:
    """`take` a node, run it, say `done` or `failed`; until `is_over`.

    A node is waiting, ready, running or done. `failure` implies that no node becomes running.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.failure: tuple[int, BaseException] | None = None
        self.running: set[int] = set()
        self._waits = list(graph.waits)
        self._ready = deque(at for at, count in enumerate(graph.waits) if count == 0)
        self._left = len(graph.nodes)
        self._abandoned = False

    def take(self) -> int | None:
        """A node to run now; None if none is ready."""
        if self._stopped or not self._ready:
            return None
        node = self._ready.popleft()
        self.running.add(node)
        return node

    def done(self, node: int) -> None:
        """Nodes that waited for this one alone come first: their inputs are warm in this core."""
        self.running.remove(node)
        self._left -= 1
        for successor in reversed(self.graph.successors[node]):
            self._waits[successor] -= 1
            if self._waits[successor] == 0:
                self._ready.appendleft(successor)

    def failed(self, node: int, error: BaseException) -> None:
        self.running.remove(node)
        if self.failure is None:
            self.failure = (node, error)

    def abandon(self) -> None:
        """Nobody waits for the rest any more."""
        self._ready.clear()
        self._abandoned = True

    @property
    def ready(self) -> int:
        """How many nodes could be taken."""
        return 0 if self._stopped else len(self._ready)

    @property
    def is_over(self) -> bool:
        return not self.running and (self._stopped or self._left == 0)

    @property
    def _stopped(self) -> bool:
        return self._abandoned or self.failure is not None
