"""Dependencies among computations that share memory: the graph that a thread pool walks.

Nodes are listed in a valid order, of which the graph keeps only the necessary part. Each write of a
place makes a new version of it (static single assignment): a reader waits for the version it reads,
and a writer for all readers of the version it replaces. So any walk along the graph computes the
same bits as the list. Pure: no threads here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from psrt.graph.program import Op

Place = Hashable
"""A unit of reading and writing: a var of one replica, a shared var, a buffer of several vars."""


def union(sets: Iterable[frozenset[Place]]) -> frozenset[Place]:
    return frozenset[Place]().union(*sets)


@dataclass(frozen=True)
class SsaNode:
    """One computation: of shared memory, `run` reads only `reads` and writes only `writes`.

    `op` is the op it computes, None for a node added by the executor, which `label` names.
    A `barrier` waits for all nodes listed before it, and all later nodes wait for it.
    `home` is the replica whose thread has the inputs in its cache, None for the node's own.
    `parts` are the nodes merged into this one, see `chains`; empty for a single node.
    """

    label: str
    run: Callable[[], None]
    reads: frozenset[Place] = frozenset()
    writes: frozenset[Place] = frozenset()
    op: Op | None = None
    replica: int = 0
    barrier: bool = False
    home: int | None = None
    parts: tuple[SsaNode, ...] = ()

    @property
    def place(self) -> int:
        """The replica with which a thread stays when it runs this node."""
        return self.replica if self.home is None else self.home

    def __str__(self) -> str:
        return f"{self.label} of replica {self.replica}"


@dataclass(frozen=True)
class SsaGraph:
    """`successors[i]` wait for node i; `waits[i]` counts the nodes that node i waits for."""

    nodes: tuple[SsaNode, ...]
    successors: tuple[tuple[int, ...], ...]
    waits: tuple[int, ...]

    @classmethod
    def of(cls, nodes: Sequence[SsaNode]) -> SsaGraph:
        versions = _Versions()
        needs = [versions.predecessors(node, at) for at, node in enumerate(nodes)]
        successors: list[list[int]] = [[] for _ in nodes]
        for at, earlier in enumerate(needs):
            for each in sorted(earlier):
                successors[each].append(at)
        waits = tuple(len(earlier) for earlier in needs)
        return cls(tuple(nodes), tuple(map(tuple, successors)), waits)


@dataclass
class _Versions:
    """The current version of each place: its writer, and its readers so far."""

    writer: dict[Place, int] = field(default_factory=dict)
    readers: dict[Place, list[int]] = field(default_factory=dict)
    barrier: set[int] = field(default_factory=set)
    last: set[int] = field(default_factory=set)
    """Nodes without successors so far."""

    def predecessors(self, node: SsaNode, at: int) -> set[int]:
        found = set(self.last) if node.barrier else self._conflicts(node)
        for place in node.reads:
            self.readers.setdefault(place, []).append(at)
        for place in node.writes:
            self.writer[place] = at
            self.readers[place] = []
        if not found:
            found = set(self.barrier)
        if node.barrier:
            self.barrier = {at}
        self.last = (self.last - found) | {at}
        return found

    def _conflicts(self, node: SsaNode) -> set[int]:
        since = min(self.barrier, default=-1)
        read = {self.writer[place] for place in node.reads | node.writes if place in self.writer}
        read.update(at for place in node.writes for at in self.readers.get(place, ()))
        return {at for at in read if at >= since}
