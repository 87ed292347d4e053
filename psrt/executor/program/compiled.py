"""A program bound to memory of its own: cells, rows of tables, and a list of closures.

Compiling raises for every op that cannot be run. The caller fills the cells of data, parameters and
tables before it runs the closures. Steps of one compiled program may run in several threads at once
as long as no two access the same var.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from psrt.core.errors import ProgramError, PsrtError, from_code
from psrt.core.tensors import SelectedRows
from psrt.core.types import Array
from psrt.executor.compute import (
    ALIASING,
    COMPUTE,
    Bound,
    Step,
    StepSequence,
    Update,
    checked,
    in_sequence,
    make_update,
)
from psrt.executor.memory import BoundRows, Cell, CellMemory, GradientCell, Scratch, StepContext
from psrt.executor.ports import Gradient
from psrt.executor.profiling import Profiler
from psrt.graph.derived import derived_ops
from psrt.graph.ops import OPS, OWN
from psrt.graph.passes import MemoryPlan
from psrt.graph.program import ROLES, Op, Parameter, Program, Role, Var
from psrt.graph.verify import verify

OWN_MEMORY = MemoryPlan()
BoundOp: TypeAlias = tuple[Op, Step]


class Compiled:
    """`cells` by var name, `rows` by table that is looked up, `steps` by role in program order,
    `updates` by parameter.

    Vars share memory by the plan `memory`. Only ops of `roles` are compiled, and none that compute
    derived ids: these are fed, see `DerivedIds`.
    """

    def __init__(
        self,
        program: Program,
        dtype: Any,
        roles: Sequence[Role] = ROLES,
        memory: MemoryPlan = OWN_MEMORY,
    ) -> None:
        verify(program)
        self.program = program
        self.dtype = _checked_dtype(dtype)
        self.context = StepContext()
        self.profiler: Profiler | None = None
        derived = {id(op) for op in derived_ops(program)}
        shared = (op for op in program.ops if op.type in ALIASING or id(op) in derived)
        self._shared = {name for op in shared for name in op.writes()}
        self.cells = {var.name: self._new_cell(var) for var in program.vars.values()}
        self._follow()
        self._spent = memory.spent
        lookups = (op for op in program.ops if op.role == "forward" and "table" in op.inputs)
        tables = dict.fromkeys(op.inputs["table"][0] for op in lookups)
        self.rows = {name: BoundRows(program.parameters[name]) for name in tables}
        self._scratch = Scratch(self.dtype)
        self.updates: dict[str, Update] = {}
        self.steps: dict[Role, list[BoundOp]] = {role: [] for role in ROLES}
        for op in program.ops:
            if op.role in roles and id(op) not in derived:
                self.steps[op.role].append((op, self._compile(op)))
        memories = {number: CellMemory() for number in memory.owners.values()}
        for name, number in memory.owners.items():
            self.cells[name].memory = memories[number]

    def run(self, role: Role) -> None:
        """Run the ops of one role; an error names op, layer and the user's line."""
        self._run(self.steps[role])

    def _run(self, steps: Iterable[BoundOp]) -> None:
        if self.profiler is not None:
            self._run_profiled(steps, self.profiler)
            return
        sequence = StepSequence()
        for op, step in steps:
            try:
                sequence.run(step)
            except Exception as error:
                raise self.failure(op, error) from error
        sequence.end()

    def _run_profiled(self, steps: Iterable[BoundOp], profiler: Profiler) -> None:
        clock_ns = profiler.clock_ns
        for op, step in steps:
            started_ns = clock_ns()
            try:
                step()
            except Exception as error:
                raise self.failure(op, error) from error
            profiler.record(op, started_ns, clock_ns())

    def gradients(self) -> dict[str, Gradient]:
        """Gradients of the last backward by parameter name; of sparse tables as SelectedRows."""
        made = self.program.gradients()
        parameters = self.program.parameters.values()
        return {p.name: self.gradient(p, made[p.name]) for p in parameters if p.name in made}

    def gradient(self, parameter: Parameter, name: str) -> Gradient:
        """The gradient of one parameter, which is the var `name`."""
        values = self.cells[name].value
        if not parameter.sparse:
            return values
        ids = self.rows[parameter.name].ids
        assert ids is not None, name
        height = 0 if parameter.distributed else parameter.shape[0]
        return SelectedRows(ids, values, height, unique=True)

    def set_gradients(self, gradients: Mapping[str, Array]) -> None:
        """Let updates read these gradients of dense parameters, until the next backward."""
        made = self.program.gradients()
        for name, values in gradients.items():
            self.cells[made[name]].value = values

    def count_others(self, steps: int) -> None:
        """Advance learning-rate schedules by `steps` of other trainers."""
        for update in self.updates.values():
            update.pace.other_steps = steps

    def swap_gradients(self) -> None:
        """Exchange the gradient buffers, so that the next backward keeps the last gradients."""
        for cell in self.cells.values():
            if isinstance(cell, GradientCell):
                cell.swap()

    def scope_cells(self) -> list[Cell]:
        """Cells whose arrays are in the scope.

        Rows of a sparse table are fetched for the step; only updates touch the whole of it.
        """
        updates = (op for op in self.program.ops if op.role == "optimize")
        updated = {name for op in updates for name in op.inputs["parameter"]}
        whole = {p.name for p in self.program.parameters.values() if not p.sparse} | {
            name for name in updated if not self.program.parameters[name].distributed
        }
        states = {var.name for var in self.program.vars.values() if var.kind == "state"}
        return [cell for name, cell in self.cells.items() if name in whole | states]

    def memory_bytes(self) -> int:
        """Bytes of the values of a step, without parameters and data."""
        memories = {id(cell.memory): cell.memory for cell in self.cells.values()}
        return sum(memory.size_bytes for memory in memories.values())

    def drop_memory(self) -> None:
        """Release the memory of all computed values except gradients of parameters."""
        for cell in self.cells.values():
            if self.program.vars[cell.name].kind == "temp":
                cell.drop()

    def failure(self, op: Op, error: Exception) -> PsrtError:
        if isinstance(error, PsrtError):
            return from_code(error.code, f"The step failed in {op}: {error.message}", error.hint)
        shapes = ", ".join(f"{name} {self.cells[name].value.shape}" for name in op.reads())
        what = f"{type(error).__name__}: {error}"
        return ProgramError(f"The step failed in {op}, which read {shapes}: {what}.")

    def _new_cell(self, var: Var) -> Cell:
        dtype = self.dtype if var.dtype == "float32" else var.dtype
        if var.gradient_of in self.program.parameters:
            return GradientCell(var.name, dtype)
        return Cell(var.name, dtype, may_alias=var.kind != "temp" or var.name in self._shared)

    def _compile(self, op: Op) -> Step:
        if op.role == "optimize":
            pairs = zip(op.inputs["parameter"], op.inputs["gradient"], strict=True)
            return in_sequence(
                [self._compile_update(name, gradient, op).run for name, gradient in pairs]
            )
        if op.type not in COMPUTE:
            raise ProgramError(f"No executor can compute {op}.")
        vars, scratch = self.program.vars, self._scratch
        bound = Bound(
            op, vars, self.cells, self.rows, scratch, self.dtype, self.context, self._spent
        )
        ragged = [self.cells[name] for name in op.reads() if vars[name].ragged]
        step = COMPUTE[op.type](bound)
        may_differ = op.role != "forward" or OPS[op.type].lengths == OWN
        return step if may_differ or not ragged else checked(step, ragged)

    def _compile_update(self, name: str, gradient: str, op: Op) -> Update:
        parameter = self.program.parameters[name]
        rows = self.rows[name] if parameter.sparse else None
        rate = self.cells[op.inputs["rate"][0]] if "rate" in op.inputs else None
        update = make_update(parameter, self.cells[name], self.cells[gradient], rows, rate)
        self.updates[name] = update
        return update

    def _follow(self) -> None:
        """Link ragged vars that have the lengths of others; a gradient has those of its var."""
        vars = self.program.vars
        for op in self.program.ops:
            ragged = {
                slot: tuple(vars[name].ragged for name in names if name)
                for slot, names in op.inputs.items()
            }
            slot = OPS[op.type].lengths_from(ragged)
            for name in op.writes():
                leader = vars[name].gradient_of or (op.inputs[slot][0] if slot else "")
                if vars[name].ragged and leader and leader != name:
                    self.cells[name].follows = self.cells[leader]


def body_of(op: Bound) -> Program:
    """The program of one turn, or step, of an op that repeats a program; to test, if it is."""
    body = Program.from_text(op.attrs["body"])
    return body.clone(for_test=True) if op.attrs["is_test"] else body


def _checked_dtype(dtype: Any) -> np.dtype[Any]:
    """The float dtype of an executor; raises `ProgramError`."""
    for known in (np.dtype(np.float32), np.dtype(np.float64)):
        if dtype is not None and dtype in (known, known.name, known.type):
            return known
    raise ProgramError(
        f"An executor got dtype={dtype!r}.",
        hint='It computes in "float32", or in "float64" for gradient checks.',
    )
