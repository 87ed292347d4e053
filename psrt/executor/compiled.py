"""A program bound to memory of its own: cells, rows of tables, and a list of closures.

Compiling finds every op that cannot be run. Whoever runs the closures fills the cells of data,
parameters and tables before; one compiled program belongs to one thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.core.errors import ProgramError, PsrtError, from_code
from psrt.executor.bindings import Rows
from psrt.executor.cells import Cell, GradientCell
from psrt.executor.compute import COMPUTE, Bound, Step
from psrt.executor.moment import Moment
from psrt.executor.updates import compile_update
from psrt.graph.ops import OPS
from psrt.graph.program import ROLES, Op, Program, Role, Var
from psrt.graph.verify import verify


class Compiled:
    """`cells` by var name, `rows` by table that is looked up."""

    def __init__(self, program: Program, dtype: Any) -> None:
        verify(program)
        self.program = program
        self.dtype = np.dtype(dtype)
        self.moment = Moment()
        self.cells = {var.name: self._new_cell(var) for var in program.vars.values()}
        self._follow()
        self._lookups = {
            op.inputs["table"][0]: op
            for op in program.ops
            if op.role == "forward" and "table" in op.inputs
        }
        self.rows = {name: Rows(program.parameters[name]) for name in self._lookups}
        self.gradient_cells = [c for c in self.cells.values() if isinstance(c, GradientCell)]
        self._scratch = Cell("scratch", self.dtype)
        self._steps: dict[Role, list[tuple[Step, Op]]] = {role: [] for role in ROLES}
        for op in program.ops:
            self._steps[op.role].append((self._compile(op), op))

    def run(self, role: Role) -> None:
        """Run the ops of one role; an error names op, layer and the user's line."""
        for step, op in self._steps[role]:
            try:
                step()
            except Exception as error:
                raise self.failure(op, error) from error

    def scope_cells(self) -> list[Cell]:
        """Cells whose arrays stand in the scope.

        Rows of a sparse table are fetched for the step; only updates touch the whole of it.
        """
        updated = {op.inputs["parameter"][0] for op in self.program.ops if op.type == "update"}
        whole = {p.name for p in self.program.parameters.values() if not p.sparse} | {
            name for name in updated if not self.program.parameters[name].distributed
        }
        states = {var.name for var in self.program.vars.values() if var.kind == "state"}
        return [cell for name, cell in self.cells.items() if name in whole | states]

    def lookup_failure(self, table: str, error: Exception) -> PsrtError:
        """An error in fetching the rows of a table, blamed on a lookup of it."""
        return self.failure(self._lookups[table], error)

    def failure(self, op: Op, error: Exception) -> PsrtError:
        if isinstance(error, PsrtError):
            return from_code(error.code, f"The step failed in {op}: {error.message}", error.hint)
        shapes = ", ".join(f"{name} {self.cells[name].value.shape}" for name in op.reads())
        what = f"{type(error).__name__}: {error}"
        return ProgramError(f"The step failed in {op}, which read {shapes}: {what}.")

    def _new_cell(self, var: Var) -> Cell:
        dtype = self.dtype if var.dtype == "float32" else var.dtype
        is_gradient = var.gradient_of in self.program.parameters
        return (GradientCell if is_gradient else Cell)(var.name, dtype)

    def _compile(self, op: Op) -> Step:
        if op.type == "update":
            name, gradient = op.inputs["parameter"][0], op.inputs["gradient"][0]
            parameter = self.program.parameters[name]
            rows = self.rows[name] if parameter.sparse else None
            return compile_update(parameter, self.cells[name], self.cells[gradient], rows)
        if op.type not in COMPUTE:
            raise ProgramError(f"The sequential executor cannot compute {op}.")
        vars, scratch = self.program.vars, self._scratch
        bound = Bound(op, vars, self.cells, self.rows, scratch, self.dtype, self.moment)
        return COMPUTE[op.type](bound)

    def _follow(self) -> None:
        """Ragged vars that have the lengths of others; a gradient has those of its var."""
        vars = self.program.vars
        for op in self.program.ops:
            ragged = {
                slot: tuple(vars[n].ragged for n in op.inputs[slot] if n) for slot in op.inputs
            }
            slot = OPS[op.type].lengths_from(ragged)
            for name in op.writes():
                leader = vars[name].gradient_of or (op.inputs[slot][0] if slot else "")
                if vars[name].ragged and leader and leader != name:
                    self.cells[name].follows = self.cells[leader]
