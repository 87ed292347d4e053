"""Parameters of cuts and of saved models by name, read in bounded memory.

In reading order:

    row_parts     rows as arrays by column
    cut_tables    a sparse table of a cut, walked by virtual shard
    cut_dense     a dense parameter of a cut, from its blocks
    model_files   the parameters of a saved model
    states        the parameters of a cut or of a saved model, by name
    differences   differences of two cuts, table by table
"""

from psrt.pserver.saved.cut_dense import CutDense
from psrt.pserver.saved.cut_tables import CutTable
from psrt.pserver.saved.differences import TableDifference, differences
from psrt.pserver.saved.row_parts import RowPart, SavedRows
from psrt.pserver.saved.states import (
    CutState,
    SavedState,
    SourceDense,
    SourceTable,
    cut_state,
    open_cut_at,
    open_state,
    split_source,
)

__all__ = ["CutDense", "CutState", "CutTable", "RowPart", "SavedRows", "SavedState", "SourceDense"]
__all__ += ["SourceTable", "TableDifference", "cut_state", "differences", "open_cut_at"]
__all__ += ["open_state", "split_source"]
