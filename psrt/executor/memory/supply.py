"""Rows of sparse tables for a step without bound rows.

They come from the executor's source, or else from the whole table in the scope. They are copied
into memory that the next batch of the table reuses. Lookups can also read some whole tables in
place. One supply belongs to one thread.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from psrt.core.errors import ProgramError, PsrtError, from_code
from psrt.core.tensors import Ragged
from psrt.core.types import I32, I64, Array
from psrt.executor.memory.bindings import RowBatch, distinct_ids, lookups_by_table, rows_of_whole
from psrt.executor.memory.cells import CellMemory
from psrt.executor.memory.scope import Scope, check_shape
from psrt.executor.ports import ParamSource
from psrt.graph.program import Op, Parameter, Program
from psrt.kernels.tables import gather


class RowSupply:
    """Row batches of one program, for the ids of a batch; `lookups` as in `lookups_by_table`."""

    def __init__(self, program: Program, scope: Scope, source: ParamSource | None) -> None:
        self._program, self._scope, self._source = program, scope, source
        self.lookups = lookups_by_table(program)
        self._memory: dict[str, CellMemory] = {}

    @property
    def tables(self) -> list[str]:
        """The sparse tables of which the program looks up rows."""
        return list(self.lookups)

    def check_bound(self, rows: Mapping[str, RowBatch]) -> None:
        """Raise `ProgramError` unless rows are bound to tables that the program looks up."""
        if rows.keys() <= self.lookups.keys():
            return
        name = next(name for name in rows if name not in self.lookups)
        known = ", ".join(self.lookups) or "none"
        raise ProgramError(
            f"Rows are bound to {name}, which is no sparse table of the program.",
            hint=f"Its sparse tables: {known}.",
        )

    def batch(self, table: str, feed: Mapping[str, Array | Ragged]) -> RowBatch:
        """The rows that the ids in `feed` look up in `table`, each once.

        An error is blamed on an op that looks them up.
        """
        ids, index = distinct_ids(feed, self.lookups[table])
        try:
            rows = self._pull(self._program.parameters[table], ids)
        except PsrtError as error:
            what = f"The step failed in {self._lookup_op(table)}: {error.message}"
            raise from_code(error.code, what, error.hint) from error
        return RowBatch(ids, rows, index)

    def may_read_in_place(self, table: str) -> bool:
        """Return True if lookups can read the whole table in the scope.

        False if a row must read as zeros, or if an op keeps rows and adds to them later.
        """
        parameter = self._program.parameters[table]
        lookups = (op for op in self._program.ops if op.inputs.get("table") == (table,))
        return (
            self._source is None
            and not parameter.distributed
            and parameter.padding_id is None
            and not any(any(op.outputs.get("argmax", ())) for op in lookups)
        )

    def _lookup_op(self, table: str) -> Op:
        return next(op for op in self._program.ops if op.inputs.get("table") == (table,))

    def _pull(self, parameter: Parameter, ids: I64) -> Array:
        slots = None if parameter.distributed else rows_of_whole(parameter, ids)
        if self._source is not None:
            return self._source.pull_rows({parameter.name: ids})[parameter.name]
        if slots is None:
            raise ProgramError(
                f"Nothing holds the rows of the distributed table {parameter.name}.",
                hint="Bind them for the step, or give the executor a source.",
            )
        return self._copied(parameter, ids, slots)

    def _copied(self, parameter: Parameter, ids: I64, slots: I32) -> Array:
        """The rows of a whole table in the scope."""
        table = self._scope[parameter.name]
        check_shape(parameter.name, table, parameter.shape)
        memory = self._memory.setdefault(parameter.name, CellMemory())
        found = memory.array((len(ids), table.shape[1]), table.dtype)
        take = gather if table.dtype == np.float32 else gather.python
        take(table, slots, found)
        if parameter.padding_id is not None:
            found[ids == parameter.padding_id] = 0
        return found
