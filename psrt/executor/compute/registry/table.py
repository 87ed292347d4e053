"""The table of computations: op type → how an op of that type becomes a step.

A compute function is called once for each op of a program, with the op's slots resolved to cells,
and returns a closure that every run calls without arguments. What can be decided once is decided
outside of the closure. A step reads `cell.value`, writes what `cell.reserve(shape)` hands out, and
never writes into its inputs, except for vars it changes in place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from psrt.core.types import Shape
from psrt.executor.compute.registry.noted import CachedCommands, Step
from psrt.executor.memory import BoundRows, Cell, Scratch, StepContext
from psrt.graph.program import Op, Var
from psrt.kernels.jit import Kernel
from psrt.kernels.ops import EagerBackend, backend_for


@dataclass(frozen=True)
class Bound:
    """An op with its slots resolved; `dtype` is that of the executor's floats.

    `context` is the executor's and changes from step to step: read it inside the closure. `spent`
    are vars nobody needs once their only reader has run.
    """

    op: Op
    vars: Mapping[str, Var]
    cells: Mapping[str, Cell]
    tables: Mapping[str, BoundRows]
    shared: Scratch
    dtype: Any
    context: StepContext
    spent: Collection[str] = ()

    @property
    def attrs(self) -> Mapping[str, Any]:
        return self.op.attrs

    def many(self, slot: str) -> list[Cell | None]:
        """The cells of a slot by position; None where nobody needs the gradient."""
        names = self.op.inputs.get(slot, ()) or self.op.outputs.get(slot, ())
        return [self.cells[name] if name else None for name in names]

    def all(self, slot: str) -> list[Cell]:
        return [cell for cell in self.many(slot) if cell is not None]

    def maybe(self, slot: str) -> Cell | None:
        cells = self.many(slot)
        return cells[0] if cells else None

    def one(self, slot: str) -> Cell:
        return self.cells[(self.op.inputs.get(slot) or self.op.outputs[slot])[0]]

    def shapes(self, slot: str) -> list[Shape]:
        """What was declared, with -1 for the rows of a batch."""
        return [self.vars[name].shape for name in self.op.inputs[slot]]

    def rows(self, slot: str) -> BoundRows:
        """The table in a slot, of which rows are looked up."""
        return self.tables[self.op.inputs[slot][0]]

    def may_overwrite(self, slot: str) -> bool:
        """Whether this op may write into an input, because it is the last that reads it."""
        return self.op.inputs[slot][0] in self.spent

    def scratch(self) -> Cell:
        """Memory that all ops of a thread share: stale at the start of a step, one cell an op.

        What is warm in the cache is half the time of an elementwise pass.
        """
        return self.shared if self.floats == self.dtype else Scratch(self.floats)

    def own(self) -> Cell:
        """Memory that keeps its contents from step to step."""
        return Cell(f"constants of {self.op.layer}", self.floats, shares=True)

    @property
    def floats(self) -> Any:
        """The type this op computes in: float64 in a float32 executor if it reads a float64 var.

        Sums that a metric keeps in the scope are no operands.
        """
        read = [self.vars[name] for name in self.op.reads()]
        is_wide = any(var.dtype == "float64" and var.kind != "state" for var in read)
        return np.dtype(np.float64) if is_wide else self.dtype

    def noted(self, note: Callable[[EagerBackend], None], reads_context: bool = False) -> Step:
        """A step that consists of what `note` writes down on the tape it is given.

        What it writes must follow from the arrays in the op's cells, unless it `reads_context`. A
        tape has one type: an op of another computes at once, in its turn.
        """
        if self.floats != self.dtype:
            return partial(note, EagerBackend())
        read = [] if reads_context else [name for name in self.op.reads() if name]
        if any(self.vars[name].kind == "data" for name in read):  # other arrays in every step
            read = []
        written = [self.cells[name] for name in self.op.writes() if name]
        cells = [self.cells[name] for name in read]
        return CachedCommands(note, backend_for(self.dtype), cells, written, self.shared)

    def form(self, kernel: Kernel) -> Callable[..., Any]:
        """The machine code of a kernel for float32, loaded now so that no step waits for it.

        For float64, in which gradient checks run, no code is compiled: the loop is interpreted.
        """
        if self.floats != np.float32:
            return kernel.python
        kernel.load()
        return kernel


SHARING = frozenset(
    (
        "assign_grad",
        "concat_grad",
        "elementwise_add_grad",
        "elementwise_sub_grad",
        "reshape",
        "reshape_grad",
        "stack_grad",
        "sum_grad",
    )
)
"""Op types whose outputs may lie in the memory of their inputs; `Cell.share` holds them to it."""

SHAPES_ONLY: Mapping[str, frozenset[str]] = {
    type: frozenset(slots.split())
    for type, slots in {
        "concat_grad": "x",
        "elementwise_add_grad": "x y",
        "elementwise_sub_grad": "x y",
        "expand_grad": "x",
        "mean_grad": "x",
        "pool2d_grad": "input",
        "reduce_mean_grad": "x",
        "reduce_sum_grad": "x",
        "reshape_grad": "x",
        "sequence_pool_grad": "x",
        "slice_grad": "input",
    }.items()
}
"""Slots of which an op type reads no more than shape and offsets: their memory may be used again
before. `tests/unit/executor/test_shapes_only.py` runs each of them over memory full of NaN."""

Compute: TypeAlias = Callable[[Bound], Step]

COMPUTE: dict[str, Compute] = {}


def computes(type: str) -> Callable[[Compute], Compute]:
    """Enter a compute function into the table."""

    def enter(compute: Compute) -> Compute:
        assert type not in COMPUTE, type
        COMPUTE[type] = compute
        return compute

    return enter
