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

_OF_ALL = {
    "reduce_sum": np.add,
    "reduce_max": np.maximum,
    "reduce_min": np.minimum,
    "reduce_prod": np.multiply,
}


class Fetches:
    """Which vars of a program can be fetched, and how.

    `asked` is the program as its user knows it, `prepared` what became of it.
    """

    def __init__(self, asked: Program, prepared: Prepared) -> None:
        program = self._program = prepared.program
        self._asked, self._lost = asked, prepared.lost
        self._role_of = {name: op.role for op in program.ops for name in op.writes()}
        self._writer = {name: op.type for op in program.ops for name in op.writes()}
        self._of_batch = _computed_from_data(program)
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

        Rows are put in order. Sums and counts are added, maxima and minima taken of all; metrics
        over many steps give the last replica's, which has counted all; gradients of parameters are
        the whole batch's already, and what no batch changes is the same everywhere. Other values
        are means over examples.
        """
        var, first = self._program.vars[name], parts[0]
        if isinstance(first, Ragged):
            return _joined([part for part in parts if isinstance(part, Ragged)])
        arrays = [part for part in parts if not isinstance(part, Ragged)]
        if var.shape[:1] == (ROWS,):
            return _stacked(name, arrays)
        if name in self._running:
            return arrays[-1]
        whole = name not in self._of_batch or var.gradient_of in self._program.parameters
        if whole or len(arrays) == 1:
            return first
        return self._reduced(name, arrays, weights)

    def _reduced(self, name: str, arrays: Sequence[Array], weights: Sequence[float]) -> Array:
        """Of values without rows: by what computed them."""
        of_all = _OF_ALL.get(self._writer.get(name, ""))
        first = arrays[0]
        if of_all is None and first.dtype.kind != "f":
            of_all = np.add
        if of_all is not None:
            merged: Array = of_all.reduce(arrays)
            return merged
        mean: Array = np.asarray(np.tensordot(weights, arrays, 1), first.dtype)
        return mean


def _computed_from_data(program: Program) -> set[str]:
    """Vars that differ from batch to batch, even if no parameter changes."""
    found = {var.name for var in program.data_vars()}
    for op in program.ops:
        if not found.isdisjoint(op.reads()):
            found.update(op.writes())
    return found


def copy_of(cell: Cell) -> Fetched:
    """The value of a cell, for the caller to keep."""
    if cell.offsets is None:
        return cell.value.copy()
    return Ragged(cell.value.copy(), cell.offsets.copy())


def _stacked(name: str, arrays: Sequence[Array]) -> Array:
    try:
        return np.concatenate(arrays)
    except ValueError as error:
        raise ProgramError(
            f"{name} is {arrays[0].shape} in one replica and {arrays[-1].shape} in another: "
            "examples against examples cannot be put together.",
            hint="Fetch it with return_merged=False, or something computed from it.",
        ) from error


def _joined(parts: Sequence[Ragged]) -> Ragged:
    ends = np.cumsum([0, *(len(part.values) for part in parts)])
    offsets = [part.offsets[1:] + end for part, end in zip(parts, ends[:-1], strict=True)]
    first = parts[0].offsets[:1]
    return Ragged(np.concatenate([p.values for p in parts]), np.concatenate([first, *offsets]))
