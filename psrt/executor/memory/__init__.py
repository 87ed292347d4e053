"""memory: files in reading order.

scope         Var → array on a trainer: parameters, and the counts that metrics keep
step_context  Where in training a compiled program stands, and which part of a batch it sees
cells         The memory behind vars at run time
bindings      Rows of tables for one step: which ids a batch looks up, and where their rows lie
supply        Where the rows of sparse tables come from when nobody has bound them for a step
"""

from __future__ import annotations

from psrt.executor.memory.bindings import (
    BoundRows,
    Joined,
    RowBatch,
    SharedIds,
    check_rows,
    distinct_ids,
    join,
    lookups_by_table,
    rows_of_whole,
)
from psrt.executor.memory.cells import Cell, CellMemory, GradientCell, Scratch
from psrt.executor.memory.scope import (
    Scope,
    check_dtype,
    check_shape,
    check_writeable,
    initial_values,
)
from psrt.executor.memory.step_context import StepContext
from psrt.executor.memory.supply import RowSupply

__all__ = [
    "BoundRows",
    "Cell",
    "CellMemory",
    "GradientCell",
    "Joined",
    "RowBatch",
    "RowSupply",
    "Scope",
    "Scratch",
    "SharedIds",
    "StepContext",
    "check_dtype",
    "check_rows",
    "check_shape",
    "check_writeable",
    "distinct_ids",
    "initial_values",
    "join",
    "lookups_by_table",
    "rows_of_whole",
]
