"""The table of computations: op type → how an op of that type becomes a step.

A compute function is called once for each op of a program, with the op's slots resolved to cells,
and returns a closure that every run calls without arguments. Decisions that do not depend on the
batch are made outside the closure. A step reads `cell.value`, writes to the memory that
`cell.reserve(shape)` returns, and never writes into its inputs, except vars it changes in place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from psrt.core.types import Shape
from psrt.executor.compute.registry.recorded_steps import RecordedStep, Step
from psrt.executor.memory import BoundRows, Cell, Scratch, StepContext
from psrt.graph.program import Op, Var
from psrt.kernels.jit import Kernel
from psrt.kernels.ops import EagerBackend, backend_for


@dataclass(frozen=True)
class Bound:
    """An op with its slots resolved; `dtype` is that of the executor's floats.

    `context` is the executor's and changes from step to step: read it inside the closure. `spent`
    are vars that are unused once their only reader has run.
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
        """The cells of a slot by position; None for a gradient that is not needed."""
        names = self.op.inputs.get(slot, ()) or self.op.outputs.get(slot, ())
        return [self.cells[name] if name else None for name in names]

    def all(self, slot: str) -> list[Cell]:
        return [cell for cell in self.many(slot) if cell is not None]

    def maybe(self, slot: str) -> Cell | None:
        cells = self.many(slot)
        return cells[0] if cells else None

    def one(self, slot: str) -> Cell:
        return self.cells[(self.op.inputs.get(slot) or self.op.outputs[slot])[0]]

    def each(self, *slots: str) -> tuple[Cell, ...]:
        """The cells of several slots."""
        return tuple(self.one(slot) for slot in slots)

    def shapes(self, slot: str) -> list[Shape]:
        """The declared shapes, with -1 for the rows of a batch."""
        return [self.vars[name].shape for name in self.op.inputs[slot]]

    def rows(self, slot: str) -> BoundRows:
        """The table in a slot, from which rows are looked up."""
        return self.tables[self.op.inputs[slot][0]]

    def may_overwrite(self, slot: str) -> bool:
        """True if this op may overwrite an input, because no later op reads it."""
        return self.op.inputs[slot][0] in self.spent

    def scratch(self) -> Cell:
        """Memory that all ops of a thread share: stale at the start of a step, one cell per op.

        Memory that is warm in the cache halves the time of an elementwise pass.
        """
        return self.shared if self.floats == self.dtype else Scratch(self.floats)

    def own(self) -> Cell:
        """Memory that keeps its contents from step to step."""
        return Cell(f"constants of {self.op.layer}", self.floats, may_alias=True)

    @property
    def floats(self) -> Any:
        """The type this op computes in: float64 in a float32 executor if it reads a float64 var.

        Sums that a metric keeps in the scope do not count.
        """
        read = [self.vars[name] for name in self.op.reads()]
        is_wide = any(var.dtype == "float64" and var.kind != "state" for var in read)
        return np.dtype(np.float64) if is_wide else self.dtype

    def recorded(self, record: Callable[[EagerBackend], None]) -> Step:
        """A step that consists of the commands that `record` appends to a command list.

        A command list has one dtype: an op of another dtype computes eagerly.
        """
        if self.floats != self.dtype:
            return partial(record, EagerBackend())
        return RecordedStep(record, backend_for(self.dtype))

    def kernel(self, kernel: Kernel) -> Callable[..., Any]:
        """The machine code of a kernel for float32, loaded at once so that no step waits for it.

        For float64, in which gradient checks run, no code is compiled: the loop is interpreted.
        """
        if self.floats != np.float32:
            return kernel.python
        kernel.load()
        return kernel


ALIASING = frozenset(
    (
        "assign_grad",
        "concat_grad",
        "elementwise_add_grad",
        "elementwise_sub_grad",
        "group_rows",
        "group_rows_grad",
        "open_sizes",
        "open_sizes_grad",
        "print_value_grad",
        "reshape",
        "reshape_grad",
        "sequence_nest",
        "sequence_nest_grad",
        "sequence_rows",
        "sequence_rows_grad",
        "slot_rows",
        "slot_rows_grad",
        "stack_grad",
        "sum_grad",
    )
)
"""Op types whose outputs may alias their inputs; `Cell.alias` asserts it."""

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
        "slice_between_grad": "input",
        "slice_grad": "input",
    }.items()
}
"""Slots of which an op type reads only shape and offsets, so their memory may be reused before it.
`tests/unit/executor/test_shapes_only.py` runs each of them over memory full of NaN."""

Compute: TypeAlias = Callable[[Bound], Step]

COMPUTE: dict[str, Compute] = {}


def computes(type: str) -> Callable[[Compute], Compute]:
    """Register a compute function for an op type."""

    def register(compute: Compute) -> Compute:
        assert type not in COMPUTE, type
        COMPUTE[type] = compute
        return compute

    return register
