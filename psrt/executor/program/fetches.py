"""Copies of vars after a run, and one value merged from those of several replicas."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np

from psrt.core.errors import ProgramError
from psrt.core.hints import did_you_mean
from psrt.core.tensors import Ragged
from psrt.core.types import Array
from psrt.executor.memory import Cell
from psrt.executor.program.merging import Merge, merges
from psrt.executor.program.preparation import PreparedProgram
from psrt.graph.ops import ROWS
from psrt.graph.program import ROLES, Op, Program, Role, Var

Fetched = Array | Ragged
Fetch: TypeAlias = Sequence[str | Var] | str | Var | None
"""Vars or their names; also a single one, or None for none."""

Merged: TypeAlias = bool | Container[str]
"""Choice of the vars whose values of replicas become one: all, none, or those named."""

_KNOWN_ROLES = frozenset(ROLES)

_OF_ALL = {Merge.SUM: np.add, Merge.MAX: np.maximum, Merge.MIN: np.minimum, Merge.PROD: np.multiply}


class Fetches:
    """The vars of a program that can be fetched, and their merging over replicas.

    `built` is the user's program, `prepared` the one that runs.
    """

    def __init__(self, built: Program, prepared: PreparedProgram) -> None:
        program = self._program = prepared.program
        self._built, self._lost = built, prepared.lost
        self._trains = any(op.role != "forward" for op in built.ops)
        self._role_of = {name: op.role for op in program.ops for name in op.writes()}

    def names_of(self, fetch: Fetch, roles: Sequence[Role]) -> list[str]:
        """The names of `fetch`; raises `ProgramError` for vars that `roles` do not compute."""
        if not _KNOWN_ROLES.issuperset(roles):
            raise ProgramError(
                f"A run got the roles {roles!r}, so nothing was run.",
                hint=f"Give some of {ROLES}, as a tuple.",
            )
        if "optimize" in roles and not self._trains:
            raise ProgramError(
                f"A run got the roles {tuple(roles)!r}, but the program has no updates: nothing "
                "would be trained. Nothing was run.",
                hint="Call minimize of an optimizer inside the program, such as "
                "psrt.optimizer.Adagrad(0.05).minimize(loss).",
            )
        if fetch is None:
            return []
        vars = [fetch] if isinstance(fetch, str | Var) else fetch
        return [self._name_of(var, roles) for var in vars]

    def _name_of(self, var: object, roles: Sequence[Role]) -> str:
        if not isinstance(var, str | Var):
            raise ProgramError(
                f"fetch holds {var!r}, which is neither a var nor the name of one.",
                hint="Give the vars that layers returned, or their names.",
            )
        name = var if isinstance(var, str) else var.name
        known = self._program.vars
        if name in self._lost or (name in self._built.vars and name not in known):
            raise ProgramError(
                f"{name} is fused away, or its memory is used again, before it can be fetched.",
                hint=f"Name it when the executor is made: keep=[{name!r}].",
            )
        if name not in known:
            hint = did_you_mean(name, known)
            raise ProgramError(f"The program has no var {name} to fetch.", hint=hint)
        role = self._role_of.get(name, "forward")
        computed = role in roles or (role == "clip_and_decay" and "backward" in roles)
        if known[name].kind != "parameter" and not computed:
            raise ProgramError(f"{name} was not computed: it is a {role} var, {roles} were run.")
        return name

    def check_mergeable(self, names: Sequence[str]) -> None:
        """Raise `ProgramError` for a var whose values of several replicas cannot be merged."""
        for name in names:
            if self._merges[name] is not Merge.APART:
                continue
            if ROWS in self._program.vars[name].shape:
                what = "examples against examples of one replica's share"
            else:
                what = f"what {self._writer(name)} makes of values of one replica's share"
            raise ProgramError(
                f"{name} is {what}; that of the whole batch does not follow from these, so "
                "nothing was run.",
                hint="Fetch it with return_merged=False, or what it is computed from.",
            )

    def merged(self, name: str, parts: Sequence[Fetched], weights: Sequence[float]) -> Fetched:
        """One value merged from those of the replicas, weighted by their shares of the batch."""
        first, merge = parts[0], self._merges[name]
        if len(parts) == 1:
            return first
        if isinstance(first, Ragged):
            return _joined([part for part in parts if isinstance(part, Ragged)])
        arrays = [part for part in parts if not isinstance(part, Ragged)]
        if merge is Merge.ROWS:
            return np.concatenate(arrays)
        if merge is Merge.MEAN:
            mean: Array = np.asarray(np.tensordot(weights, arrays, 1), first.dtype)
            return mean
        if merge in _OF_ALL:
            merged: Array = _OF_ALL[merge].reduce(arrays)
            return merged
        return arrays[-1] if merge is Merge.LAST else first

    @cached_property
    def _merges(self) -> Mapping[str, Merge]:
        return merges(self._program)

    def _writer(self, name: str) -> Op:
        return next(op for op in self._program.ops if name in op.writes())


def among(names: Sequence[str], chosen: Merged) -> Sequence[str]:
    """The names that are chosen: all for True, none for False."""
    if isinstance(chosen, bool):
        return names if chosen else ()
    return [name for name in names if name in chosen]


def copy_of(cell: Cell) -> Fetched:
    """A copy of the value of a cell."""
    if cell.offsets is None:
        return cell.value.copy()
    return Ragged(cell.value.copy(), cell.offsets.copy())


def _joined(parts: Sequence[Ragged]) -> Ragged:
    ends = np.cumsum([0, *(len(part.values) for part in parts)])
    offsets = [part.offsets[1:] + end for part, end in zip(parts, ends[:-1], strict=True)]
    first = parts[0].offsets[:1]
    return Ragged(np.concatenate([p.values for p in parts]), np.concatenate([first, *offsets]))
