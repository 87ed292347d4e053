"""The sequential executor: the closures of a compiled program, run in order.

An executor belongs to one thread. It promises that a failing step names op, layer and the user's
line, and that fetched arrays are the caller's own. Gradients are not: see `Executor.gradients`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from psrt.core.errors import ProgramError
from psrt.core.tensors import Ragged, SelectedRows
from psrt.core.types import I64, Array
from psrt.executor import feeds
from psrt.executor.bindings import RowBatch, Rows, distinct_ids, lookups_by_table, rows_of_whole
from psrt.executor.cells import Cell
from psrt.executor.compiled import Compiled
from psrt.executor.ports import Gradient, GradSink, ParamSource
from psrt.executor.scope import Scope
from psrt.graph.program import ROLES, Program, Role, Var


class Executor:
    """Runs one program over one scope.

    `source` gives rows of sparse tables that were not bound for a step; without one they come from
    the scope. `sink` is handed the gradients after each backward. `dtype` "float64" computes in
    double precision, for gradient checks; the scope must hold float64 parameters then.
    """

    def __init__(
        self,
        program: Program,
        scope: Scope,
        source: ParamSource | None = None,
        sink: GradSink | None = None,
        dtype: str = "float32",
    ) -> None:
        self.program, self.scope, self.source, self.sink = program, scope, source, sink
        self._compiled = Compiled(program, dtype)
        self._cells = self._compiled.cells
        self._in_scope = self._compiled.scope_cells()
        self._data = {var.name: var for var in program.data_vars()}
        self._lookups = lookups_by_table(program)
        made = program.gradients()
        self._gradients = {p: self._cells[made[p]] for p in program.parameters if p in made}
        self._role_of = {name: op.role for op in program.ops for name in op.writes()}

    def run(
        self,
        feed: Mapping[str, Array | Ragged],
        fetch: Sequence[str | Var] = (),
        rows: Mapping[str, RowBatch] | None = None,
        roles: Sequence[Role] = ("forward", "backward"),
    ) -> list[Array | Ragged]:
        """Run one batch through the ops of `roles`; returns copies of the vars in `fetch`.

        `feed` holds every data var; batches may differ in size. `rows` binds fetched rows to sparse
        tables. `roles` ("forward",) predicts; adding "optimize" trains here, without pservers.
        """
        for cell in self._in_scope:
            cell.share(self.scope[cell.name])
        if "forward" in roles:
            feeds.load(feed, self._data, self._cells)
            self._bind_rows(feed, rows or {})
        if "backward" in roles:
            for gradient in self._compiled.gradient_cells:
                gradient.swap()
        for role in ROLES:
            if role in roles or (role == "adjust" and "backward" in roles):
                self._compiled.run(role)
        self._compiled.moment.step += 1
        if self.sink is not None and "backward" in roles:
            self.sink.push(self.gradients())
        return [self._fetch(var if isinstance(var, str) else var.name, roles) for var in fetch]

    def gradients(self) -> dict[str, Gradient]:
        """Gradients of the last backward by parameter name; of sparse tables as SelectedRows.

        They are views of the executor's memory, of which there are two that take turns: the arrays
        stay as they are during the next backward and are overwritten by the one after it. Hand them
        to a communicator for one step; copy what is kept longer.
        """
        return {name: self._gradient(name, cell) for name, cell in self._gradients.items()}

    # --- rows of tables ---------------------------------------------------------------------------

    def _bind_rows(self, feed: Mapping[str, Array | Ragged], bound: Mapping[str, RowBatch]) -> None:
        for name, rows in self._compiled.rows.items():
            if name in bound:
                rows.bind(bound[name], self._compiled.dtype)
            elif rows.parameter.sparse:
                ids, index = distinct_ids(feed, self._lookups[name])
                batch = RowBatch(ids, self._pull(rows, ids), index)
                rows.bind(batch, self._compiled.dtype)
            else:
                rows.bind_whole(self.scope[name])

    def _pull(self, rows: Rows, ids: I64) -> Array:
        """Rows nobody has bound: from the source, or else from the whole table in the scope."""
        name = rows.parameter.name
        if self.source is not None:
            return self.source.pull_rows(name, ids)
        try:
            return self._own_rows(rows, ids)
        except ProgramError as error:
            raise self._compiled.lookup_failure(name, error) from error

    def _own_rows(self, rows: Rows, ids: I64) -> Array:
        parameter = rows.parameter
        if parameter.distributed:
            raise ProgramError(
                f"Nothing holds the rows of the distributed table {parameter.name}.",
                hint="Bind them for the step, or give the executor a source.",
            )
        found = self.scope[parameter.name][rows_of_whole(parameter, ids)]
        if parameter.padding_id is not None:
            found[ids == parameter.padding_id] = 0
        return found

    # --- what comes out ---------------------------------------------------------------------------

    def _gradient(self, name: str, cell: Cell) -> Gradient:
        parameter = self.program.parameters[name]
        if not parameter.sparse:
            return cell.value
        ids = self._compiled.rows[name].ids
        assert ids is not None, name
        height = 0 if parameter.distributed else parameter.shape[0]
        return SelectedRows(ids, cell.value, height, unique=True)

    def _fetch(self, name: str, roles: Sequence[Role]) -> Array | Ragged:
        if name not in self._cells:
            near = difflib.get_close_matches(name, self._cells, 1)
            hint = f"Did you mean {near[0]}?" if near else ""
            raise ProgramError(f"The program has no var {name} to fetch.", hint=hint)
        role = self._role_of.get(name, "forward")
        if self.program.vars[name].kind == "parameter":
            return self.scope[name].copy()
        if role not in roles:
            raise ProgramError(f"{name} was not computed: it is a {role} var, {roles} were run.")
        cell = self._cells[name]
        if self.program.vars[name].ragged and cell.offsets is not None:
            return Ragged(cell.value.copy(), cell.offsets.copy())
        return cell.value.copy()
