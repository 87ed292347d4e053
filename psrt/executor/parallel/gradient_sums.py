"""Graph nodes that sum the gradients of the replicas.

Either each gradient separately, as soon as all replicas have it; or, where sums wait for the end of
the replicas anyway, all gradients in one part per replica, each run by the thread that updates it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

from psrt.executor.compute import SMALL, RecordedStep, in_sequence
from psrt.executor.parallel.aggregate import GradientSum
from psrt.executor.parallel.places import Places
from psrt.executor.parallel.replicas import Replica
from psrt.executor.parallel.ssa import Place, SsaNode, union
from psrt.graph.program import Program, gradient_name
from psrt.kernels.ops import EagerBackend, backend_for


class GradientSums:
    """The gradient sums of a parallel executor with several replicas."""

    def __init__(self, program: Program, replicas: Sequence[Replica], places: Places) -> None:
        self._replicas, self._places = replicas, places
        self._backend = backend_for(replicas[0].compiled.dtype)
        made = {gradient_name(p.name): p.sparse for p in program.parameters.values()}
        self._is_sparse = {name: sparse for name, sparse in made.items() if name in program.vars}
        self._gradients = list(self._is_sparse)
        self._groups = _grouped(program, self._gradients)

    def each(self, active: Sequence[int]) -> Iterator[SsaNode]:
        """Yield a sum for each gradient of the `active` replicas; the small ones are one node."""
        for names in self._groups:
            sums, places = self._sums(names, active), self.places(names)
            kind = "sum of gradient" if len(names) == 1 else "sums of gradients"
            run = in_sequence([self._step(sums, 0, 1), *(each.publish for each in sums)])
            yield SsaNode(f"{kind} {', '.join(names)}", run, places, places)

    def in_parts(self, active: Sequence[int], ends: frozenset[Place]) -> Iterator[SsaNode]:
        """Yield all sums in parts, which wait for the places `ends` of the replicas.

        They are in the memory of the first active replica once all `parts` are written; `publish`
        then gives them to the others.
        """
        sums, until = self._sums(self._gradients, active), self.places() | ends
        for number, part in enumerate(self.parts(active)):
            run = self._step(sums, number, len(active))
            label = f"sums of gradients, part {number + 1} of {len(active)}"
            yield SsaNode(label, run, until, part, home=active[number])

    def publishing(self, active: Sequence[int]) -> SsaNode:
        """The node that publishes the sums to all replicas."""
        others = self.places() - self._places.of(self._gradients, active[0])
        publish = partial(self.publish, active)
        return SsaNode("sums for all replicas", publish, union(self.parts(active)), others)

    def publish(self, active: Sequence[int]) -> None:
        """Set the gradients of all replicas to the sums, those of the first active replica."""
        cells = [replica.compiled.cells for replica in self._replicas]
        for name in self._gradients:
            total = cells[active[0]][name].value
            for each in cells:
                each[name].value = total

    def parts(self, active: Sequence[int]) -> list[frozenset[Place]]:
        """The place that each node of `in_parts` writes."""
        return [frozenset([("part of sums", number)]) for number in range(len(active))]

    def places(self, names: Sequence[str] | None = None) -> frozenset[Place]:
        """The places of some gradients, by default all, in all replicas."""
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

    def _step(self, sums: Sequence[GradientSum], number: int, of: int) -> RecordedStep:
        """The step that computes part `number` of `of` of some sums."""

        def record(commands: EagerBackend) -> None:
            for each in sums:
                each.record(commands, number, of)

        return RecordedStep(record, self._backend)


def _grouped(program: Program, gradients: Sequence[str]) -> list[list[str]]:
    """Groups of gradients to sum as one node: each large one, and all small ones."""
    sizes = {name: math.prod(program.vars[name].shape) for name in gradients}
    small = [name for name in gradients if sizes[name] < SMALL]
    return [[name] for name in gradients if sizes[name] >= SMALL] + ([small] if small else [])
