"""The nodes of a graph that make one gradient of those of the replicas.

Each gradient by itself, as soon as all replicas have it; or, where sums wait for the replicas to
end anyway, all gradients in as many parts as there are replicas, each part by the thread that also
updates it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

from psrt.executor.compute import SMALL, CachedCommands, Step, StepSequence, in_sequence
from psrt.executor.parallel.aggregate import GradientSum
from psrt.executor.parallel.places import Places
from psrt.executor.parallel.replicas import Replica
from psrt.executor.parallel.ssa import Place, SsaNode, union
from psrt.graph.program import Program, gradient_name
from psrt.kernels.ops import backend_for


class GradientSums:
    """Sums for one parallel executor of several replicas."""

    def __init__(self, program: Program, replicas: Sequence[Replica], places: Places) -> None:
        self._replicas, self._places = replicas, places
        self._tapes = backend_for(replicas[0].compiled.dtype)
        made = {gradient_name(p.name): p.sparse for p in program.parameters.values()}
        self._is_sparse = {name: sparse for name, sparse in made.items() if name in program.vars}
        self._gradients = list(self._is_sparse)
        self._together = _together(program, self._gradients)

    def each(self, active: Sequence[int]) -> Iterator[SsaNode]:
        """A sum for each gradient of the `active` replicas; the small ones are one node."""
        for names in self._together:
            sums, places = self._sums(names, active), self.places(names)
            kind = "sum of gradient" if len(names) == 1 else "sums of gradients"
            run = in_sequence([self._noted(sums, 0, 1), *(each.tell for each in sums)])
            yield SsaNode(f"{kind} {', '.join(names)}", run, places, places)

    def in_parts(self, active: Sequence[int], ends: frozenset[Place]) -> Iterator[SsaNode]:
        """All sums, once the replicas have written `ends`.

        They are in the memory of the first replica as soon as all `parts` are written; the others
        are to be told of it then.
        """
        sums, until = self._sums(self._gradients, active), self.places() | ends
        for number, part in enumerate(self.parts(active)):
            run = self._noted(sums, number, len(active))
            label = f"sums of gradients, part {number + 1} of {len(active)}"
            yield SsaNode(label, run, until, part, home=active[number])

    def telling(self, active: Sequence[int]) -> SsaNode:
        """Let all replicas have the sums."""
        others = self.places() - self._places.of(self._gradients, active[0])
        tell = partial(self.tell, active)
        return SsaNode("sums for all replicas", tell, union(self.parts(active)), others)

    def tell(self, active: Sequence[int]) -> None:
        """Let all replicas have the sums, which are those of the first active one."""
        cells = [replica.compiled.cells for replica in self._replicas]
        for name in self._gradients:
            total = cells[active[0]][name].value
            for each in cells:
                each[name].value = total

    def parts(self, active: Sequence[int]) -> list[frozenset[Place]]:
        """What each of the nodes of `in_parts` writes."""
        return [frozenset([("part of sums", number)]) for number in range(len(active))]

    def places(self, names: Sequence[str] | None = None) -> frozenset[Place]:
        """Where gradients, if nothing is said all of them, stand in all replicas."""
        names = self._gradients if names is None else names
        numbers = range(len(self._replicas))
        return union(self._places.of(names, number) for number in numbers)

    def _sums(self, names: Sequence[str], active: Sequence[int]) -> list[GradientSum]:
        made = []
        for name in names:
            cells = [replica.compiled.cells[name] for replica in self._replicas]
            have = [cells[replica] for replica in active]
            made.append(GradientSum(have, cells, self._is_sparse[name]))
        return made

    def _noted(self, sums: Sequence[GradientSum], number: int, of: int) -> Step:
        """What makes the `number`-th of `of` parts of some sums."""
        noted = [
            CachedCommands(partial(each.note, number=number, of=of), self._tapes, each.cells)
            for each in sums
        ]

        def run() -> None:
            sequence = StepSequence()
            for each in noted:
                sequence.run(each)
            sequence.end()

        return run


def _together(program: Program, gradients: Sequence[str]) -> list[list[str]]:
    """Gradients to sum as one node: a large one alone, all small ones together."""
    sizes = {name: math.prod(program.vars[name].shape) for name in gradients}
    small = [name for name in gradients if sizes[name] < SMALL]
    return [[name] for name in gradients if sizes[name] >= SMALL] + ([small] if small else [])
