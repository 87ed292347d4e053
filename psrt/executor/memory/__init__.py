"""memory: files in reading order.

scope         var → array on a trainer: parameters, and the state of metrics
cells         the memory behind vars at run time
bindings      rows of tables for one step: the ids a batch looks up, and their rows
supply        rows of sparse tables that nobody has bound for a step
"""

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
from psrt.executor.memory.cells import Cell, CellMemory, GradientCell, Scratch, StepContext
from psrt.executor.memory.scope import (
    Scope,
    check_dtype,
    check_shape,
    check_writeable,
    initial_values,
)
from psrt.executor.memory.supply import RowSupply

__all__ = ["BoundRows", "Joined", "RowBatch", "SharedIds", "check_rows", "distinct_ids", "join"]
__all__ += ["Cell", "CellMemory", "GradientCell", "Scratch", "lookups_by_table", "rows_of_whole"]
__all__ += ["RowSupply", "Scope", "check_dtype", "check_shape", "check_writeable", "initial_values"]
__all__ += ["StepContext"]
