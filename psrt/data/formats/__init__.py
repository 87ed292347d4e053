"""Formats of files: text and tables to batches. In reading order:

batch_arrays   The memory of a batch while a kernel fills it
multislot      MultiSlot lines to batches
rebatching     Pieces of any number of examples, joined into batches of one size
libsvm         libsvm text (also svmlight): `label index:value index:value …` to batches
fields         The columns of a table that feed each slot, and their kinds
cells          Cells of a column, from ranges of text to the numbers of a slot
cut_lines      Lines that a kernel cuts into ranges, then read column by column
table_rows     Cells of a table to slots, column by column
delimited      Delimited text (CSV, TSV, columns between blanks), a row of cells per line
pairs          Lines of `name:value` words, as in PaddleRec's samples
criteo_table   The public Criteo table as a delimited format
arrow_columns  Columns of an Arrow table to the numbers of a slot
arrow_ends     Ends of Arrow IPC streams and files, which pyarrow does not check
arrow          Parquet and Arrow IPC files through pyarrow, a row group at a time
raw_rows       Rows in memory to the arrays of a batch
formats        The protocols of formats, and a format by its name
"""

from psrt.data.formats.batch_arrays import DTYPES, layout_of
from psrt.data.formats.delimited import DelimitedFormat
from psrt.data.formats.formats import (
    Format,
    MultiSlotFormat,
    Parser,
    RowGroup,
    RowGroupFormat,
    TextFormat,
    format_named,
    options_of,
)
from psrt.data.formats.libsvm import libsvm_error
from psrt.data.formats.multislot import BatchParser, malformed, number_at, shown_at
from psrt.data.formats.raw_rows import batch_of, fields_in
from psrt.data.formats.rebatching import Rebatcher, joined

__all__ = ["DTYPES", "BatchParser", "DelimitedFormat", "Format", "MultiSlotFormat", "Parser"]
__all__ += ["Rebatcher", "RowGroup", "RowGroupFormat", "TextFormat", "format_named", "joined"]
__all__ += ["layout_of", "libsvm_error", "malformed", "number_at", "options_of"]
__all__ += ["batch_of", "fields_in", "shown_at"]
