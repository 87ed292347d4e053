"""Computing derived ids: those of sparse tables that depend on the fed batch alone.

They are computed before the rows of a step are fetched, and then fed like data. A trainer computes
those of the next batch in its background thread, an executor those that are missing.
"""

from __future__ import annotations

from functools import cached_property

from psrt.core.tensors import Ragged
from psrt.core.types import Array
from psrt.executor.program.compiled import Compiled
from psrt.executor.program.feeds import Feed, Intake
from psrt.graph.derived import derived_ops, derived_vars
from psrt.graph.program import Program, Var
from psrt.graph.verify import verify


class DerivedIds:
    """The derived ids of one program; an instance belongs to one thread.

    Their part of the program is verified at once, and compiled for the first batch without ids: an
    executor whose trainer derives them ahead never compiles it. `first_example` counts the examples
    of a step on the trainers before this one.
    """

    def __init__(self, program: Program, first_example: int = 0) -> None:
        self._names = derived_vars(program)
        self._part, self._first_example = derived_part(program), first_example
        verify(self._part)
        self._data = {var.name: var for var in self._part.data_vars()}

    def extend(self, feed: Feed, step: int) -> Feed:
        """`feed` with the derived ids of step `step`; `feed` itself if none are missing."""
        if all(name in feed for name in self._names):
            return feed
        mine = {name: feed[name] for name in self._data if name in feed}
        self._intake.load(mine)
        self._compiled.context.step = step
        self._compiled.run("forward")
        return {**feed, **{name: self._value(name) for name in self._names}}

    @cached_property
    def _compiled(self) -> Compiled:
        compiled = Compiled(self._part, "float32")
        compiled.context.first_example = self._first_example
        return compiled

    @cached_property
    def _intake(self) -> Intake:
        return Intake(self._data, self._compiled.cells)

    def _value(self, name: str) -> Array | Ragged:
        cell = self._compiled.cells[name]
        if cell.offsets is None:
            return cell.value.copy()
        return Ragged(cell.value.copy(), cell.offsets)


def fed_vars(program: Program) -> dict[str, Var]:
    """The vars that an executor is fed: data vars and derived ids."""
    fed = [*program.data_vars(), *(program.vars[name] for name in derived_vars(program))]
    return {var.name: var for var in fed}


def derived_part(program: Program) -> Program:
    """The ops of a program that compute derived ids, as a program of their own."""
    ops = derived_ops(program)
    names = {name for op in ops for name in (*op.reads(), *op.writes())}
    vars = {name: var for name, var in program.vars.items() if name in names}
    return Program(program.seed, vars, ops)
