"""formats: files in reading order.

batch_arrays   The memory of a batch while a kernel fills it: words of 4 bytes, and offsets of
               ragged slots
multislot      MultiSlot lines to mini-batches
pieces         Pieces of any number of examples, cut and joined into batches of one size
svmlight       libsvm text (also svmlight) read directly: `label index:value index:value …`
               into batches
fields         Which columns of a table feed which slot, and as what
cells          Values of a column, from ranges of text to the numbers that a slot takes
cut_lines      Lines of text that a kernel cuts into ranges first, and which are then read
               column by column
table_rows     Cells of a table to slots: the lines just cut of a file, column by column
delimited      Delimited text (CSV, TSV, columns between blanks) read directly, a row of cells
               per line
pairs          Lines of `name:value` words, as PaddleRec's samples have them, read directly
               into batches
criteo_table   The public Criteo table read directly: the columns of `psrt.data.convert.criteo`
               as a delimited format
arrow_columns  Columns of an Arrow table to the numbers that a slot takes
arrow_ends     Where Arrow IPC streams and files end, which pyarrow does not look at
arrow          Parquet and Arrow IPC files through pyarrow, a row group or record batch at a
               time
formats        Formats: how the bytes of one file become batches
"""

from __future__ import annotations

from psrt.data.formats.batch_arrays import DTYPES, layout_of
from psrt.data.formats.delimited import DelimitedFormat
from psrt.data.formats.formats import (
    Format,
    MultiSlotFormat,
    RowGroup,
    RowGroupFormat,
    TextFormat,
    format_named,
)
from psrt.data.formats.multislot import BatchParser, malformed, number_at, shown_at
from psrt.data.formats.pieces import Cutter, joined
from psrt.data.formats.svmlight import libsvm_error

__all__ = [
    "DTYPES",
    "BatchParser",
    "Cutter",
    "DelimitedFormat",
    "Format",
    "MultiSlotFormat",
    "RowGroup",
    "RowGroupFormat",
    "TextFormat",
    "format_named",
    "joined",
    "layout_of",
    "libsvm_error",
    "malformed",
    "number_at",
    "shown_at",
]
