"""Copies of a program that work on shares of one batch, and the parameters they see.

With shared parameters (Reduce, and whenever nobody updates here) all replicas read the arrays of
the scope. With copies (AllReduce) the scope's arrays belong to the first replica, and the others
have their own of what is trained; running statistics and counts of metrics are shared either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psrt.core.types import Array
from psrt.executor.memory import RowBatch, Scope
from psrt.executor.parallel.shares import BatchShare, part_of_feed, part_of_rows
from psrt.executor.program import Compiled, Feed, Intake, PreparedProgram, ScopeBinding, fed_vars
from psrt.graph.program import ROLES, Program, Role

PASSES: tuple[Role, ...] = ("forward", "backward")


class Replica:
    """One copy of the program: its cells, and its view of the parameters."""

    def __init__(self, prepared: PreparedProgram, dtype: Any, roles: Sequence[Role]) -> None:
        self.compiled = Compiled(prepared.program, dtype, roles, prepared.memory)
        self._scope_binding = ScopeBinding(self.compiled)
        self.fed = fed_vars(prepared.program)
        self._intake = Intake(self.fed, self.compiled.cells)

    def share_updates(self, other: Replica) -> None:
        """Count steps and keep optimizer state together with another replica from now on."""
        for name, update in self.compiled.updates.items():
            update.share(other.compiled.updates[name])

    def bind_scope(self, arrays: Scope, roles: Sequence[Role]) -> None:
        """Read and write the parameters that stand in `arrays` from now on, in ops of `roles`."""
        self._scope_binding.bind(arrays, roles)

    def checked(self, feed: Feed) -> Feed:
        """A batch as replicas take it, see `Intake.checked`."""
        return self._intake.checked(feed)

    def load(self, share: BatchShare, feed: Feed, rows: dict[str, RowBatch], arrays: Scope) -> None:
        """Take a share of a checked batch; `rows` are of the whole batch, of sparse tables.

        Tables without are looked up whole. Rows are bound for an empty share too: this replica may
        update by the others' gradients.
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
    """The scopes of the replicas in AllReduce: the user's own, and copies of what is trained.

    An array that the user puts into the scope between two runs is copied anew.
    """

    def __init__(self, program: Program, scope: Scope, replicas: int) -> None:
        self.scopes = [scope, *(Scope() for _ in range(replicas - 1))]
        self._trained = {p.name for p in program.trained() if not p.distributed}
        self._seen: dict[str, Array] = {}

    def forget(self) -> None:
        """Arrays of the user's scope were written into: copy them all anew."""
        self._seen.clear()

    def refresh(self) -> None:
        """Before a run: make every copy that is missing or out of date."""
        own = self.scopes[0]
        for name in own:
            if self._seen.get(name) is own[name]:
                continue
            self._seen[name] = own[name]
            for scope in self.scopes[1:]:
                scope[name] = own[name].copy() if name in self._trained else own[name]


def make_replicas(
    prepared: PreparedProgram, dtype: Any, count: int, with_updates: int
) -> list[Replica]:
    """`with_updates` of them also clip and regularise gradients and update parameters."""
    return [Replica(prepared, dtype, ROLES if r < with_updates else PASSES) for r in range(count)]
