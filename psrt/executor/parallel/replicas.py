"""Copies of a program that compute shares of one batch, and their parameters.

With shared parameters (Reduce, and all runs without updates) all replicas read the arrays of the
scope. With copies (AllReduce) the scope's arrays belong to the first replica, and the others have
copies of trained parameters. Running statistics and the state of metrics are always shared. Of a
state that `set_state` assigns, a step counter, the first replica has the scope's array, the others
have copies: each counts the step once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from psrt.core.types import Array
from psrt.executor.compute import go_on
from psrt.executor.memory import RowBatch, Scope
from psrt.executor.parallel.shares import BatchShare, is_for_each, part_of_feed, part_of_rows
from psrt.executor.program import (
    Compiled,
    Feed,
    FiniteChecks,
    Intake,
    PreparedProgram,
    ScopeBinding,
    add_checks,
    fed_vars,
    has_rows,
)
from psrt.graph.program import ROLES, Program, Role

PASSES: tuple[Role, ...] = ("forward", "backward")


class Replica:
    """One copy of the program: its cells, and its view of the parameters."""

    def __init__(self, prepared: PreparedProgram, dtype: Any, roles: Sequence[Role]) -> None:
        self.compiled = Compiled(prepared.program, dtype, roles, prepared.memory)
        self._scope_binding = ScopeBinding(self.compiled)
        self.fed = fed_vars(prepared.program)
        self._whole = [var for var in self.fed.values() if not has_rows(var)]
        self._intake = Intake(self.fed, self.compiled.cells)
        ops = prepared.program.ops
        self._assigned = {n for op in ops if op.type == "set_state" for n in op.writes()}

    def share_updates(self, other: Replica) -> None:
        """Share step counts and optimizer state with another replica from now on."""
        go_on(self.compiled.updates, other.compiled.updates)

    def bind_scope(self, arrays: Scope, roles: Sequence[Role], is_first: bool = True) -> None:
        """Read and write the parameters in `arrays` from now on, in ops of `roles`."""
        self._scope_binding.bind(arrays, roles)
        if not is_first:
            for name in self._assigned:
                self.compiled.cells[name].value = arrays[name].copy()

    def checked(self, feed: Feed, replicas: int = 1) -> Feed:
        """A batch in the form that so many replicas load, see `Intake.checked`."""
        own: dict[str, Array] = {
            var.name: np.asarray(feed[var.name])
            for var in self._whole
            if is_for_each(feed.get(var.name), var, replicas)
        }
        if not own:
            return self._intake.checked(feed)
        firsts = {name: fed[: len(fed) // replicas] for name, fed in own.items()}
        checked, cells = self._intake.checked({**feed, **firsts}), self.compiled.cells
        fitting = {n: np.ascontiguousarray(fed, cells[n].dtype) for n, fed in own.items()}
        return {**checked, **fitting}

    def load(self, share: BatchShare, feed: Feed, rows: dict[str, RowBatch], arrays: Scope) -> None:
        """Load a share of a checked batch; `rows` by sparse table are those of the whole batch.

        Other tables are looked up whole. Rows are bound for an empty share too, because the replica
        may update by the gradients of others.
        """
        compiled = self.compiled
        if not share.is_empty and not self._intake.put_examples(feed, share.start, share.stop):
            self._intake.put(part_of_feed(share, feed, self.fed))
        for name, table in compiled.rows.items():
            if name in rows:
                part = part_of_rows(share, rows[name], feed, self.fed)
                table.bind(part, compiled.dtype)
            else:
                table.bind_whole(arrays[name])


class ParameterCopies:
    """The scopes of the replicas in AllReduce: the user's, and copies of trained parameters.

    An array that the user puts into the scope between two runs is copied again.
    """

    def __init__(self, program: Program, scope: Scope, replicas: int) -> None:
        self.scopes = [scope, *(Scope() for _ in range(replicas - 1))]
        self._trained = {p.name for p in program.trained() if not p.distributed}
        self._seen: dict[str, Array] = {}

    def forget(self) -> None:
        """Copy all arrays again at the next `refresh`, since their values have changed."""
        self._seen.clear()

    def refresh(self) -> None:
        """Make every copy that is missing or outdated; call it before a run."""
        own = self.scopes[0]
        for name in own:
            if self._seen.get(name) is own[name]:
                continue
            self._seen[name] = own[name]
            for scope in self.scopes[1:]:
                scope[name] = own[name].copy() if name in self._trained else own[name]


def make_replicas(
    prepared: PreparedProgram, dtype: Any, count: int, with_updates: int, checks: FiniteChecks
) -> list[Replica]:
    """Make `count` replicas with `checks`; the first `with_updates` also clip, decay and update."""
    made = [Replica(prepared, dtype, ROLES if r < with_updates else PASSES) for r in range(count)]
    for replica in made:
        add_checks(replica.compiled, checks)
    return made
