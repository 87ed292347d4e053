"""What comes out of a run: copies of vars, and one value from those of several replicas."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import numpy as np

from psrt.core.errors import ProgramError
from psrt.core.tensors import Ragged
from psrt.core.types import Array
from psrt.executor.cells import Cell
from psrt.executor.preparation import Prepared
from psrt.graph.ops import ROWS
from psrt.graph.program import Program, Role, Var

Fetched = Array | Ragged


class Fetches:
    """Which vars of a program can be fetched, and how.

    `asked` is the program as its user knows it, `prepared` what became of it.
    """

    def __init__(self, asked: Program, prepared: Prepared) -> None:
        program = self._program = prepared.program
        self._asked, self._lost = asked, prepared.lost
        self._role_of = {name: op.role for op in program.ops for name in op.writes()}
        in_place = (op for op in program.ops if op.inputs.keys() & op.outputs.keys())
        self._running = {name for op in in_place for name in op.writes()}

    def name_of(self, var: str | Var, roles: Sequence[Role]) -> str:
        """The name of a var that a run of `roles` computes; raises `ProgramError`."""
        name = var if isinstance(var, str) else var.name
        known = self._program.vars
        if name in self._lost or (name in self._asked.vars and name not in known):
            raise ProgramError(
                f"{name} is fused away, or its memory is used again, before it can be fetched.",
                hint=f"Name it when the executor is made: keep=[{name!r}].",
            )
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"Did you mean {near[0]}?" if near else ""
            raise ProgramError(f"The program has no var {name} to fetch.", hint=hint)
        role = self._role_of.get(name, "forward")
        computed = role in roles or (role == "adjust" and "backward" in roles)
        if known[name].kind != "parameter" and not computed:
            raise ProgramError(f"{name} was not computed: it is a {role} var, {roles} were run.")
        return name

    def merged(self, name: str, parts: Sequence[Fetched], weights: Sequence[float]) -> Fetched:
        """One value from those of the replicas, whose shares of the batch are `weights`.

        Rows are put in order. Of scalars, metrics over many steps give the last replica's, which
        has counted all; counts are added; others are means over examples. Anything else is the same
        everywhere.
        """
        var, first = self._program.vars[name], parts[0]
        if isinstance(first, Ragged):
            return _joined([part for part in parts if isinstance(part, Ragged)])
        arrays = [part for part in parts if not isinstance(part, Ragged)]
        if var.shape[:1] == (ROWS,):
            return np.concatenate(arrays)
        if var.shape != () or var.gradient_of:
            return first
        if name in self._running:
            return arrays[-1]
        if first.dtype.kind != "f":
            total: Array = np.sum(arrays, axis=0)
            return total
        mean: Array = np.asarray(np.dot(weights, arrays), first.dtype)
        return mean


def copy_of(cell: Cell) -> Fetched:
    """The value of a cell, for the caller to keep."""
    if cell.offsets is None:
        return cell.value.copy()
    return Ragged(cell.value.copy(), cell.offsets.copy())


def _joined(parts: Sequence[Ragged]) -> Ragged:
    ends = np.cumsum([0, *(len(part.values) for part in parts)])
    offsets = [part.offsets[1:] + end for part, end in zip(parts, ends[:-1], strict=True)]
    first = parts[0].offsets[:1]
    return Ragged(np.concatenate([p.values for p in parts]), np.concatenate([first, *offsets]))
