"""text: files in reading order.

digits             Short numbers in text, eight characters at a time
text               Numbers in text: the scanners and writers that text kernels are made of
multislot          The slots of a MultiSlot line: `n v1 … vn`, read from text to words of memory
multislot_rows     MultiSlot lines to the arrays of batches, slot by slot: the loop behind
                   `psrt.data.formats.multislot`
multislot_records  MultiSlot lines to records, as `psrt.kernels.text.records` has them: the
                   values of a line in a row
lines              Arrays to MultiSlot lines, for the writers of data sets
records            Records of examples kept in memory: values of batches in, batches of any
                   records out
criteo             The public Criteo table to arrays: the loops behind
                   `psrt.data.convert.criteo`
prefixes           Words in front of the slots of a line, `1 <word>` each, moved out of the way
                   of the parser
libsvm             libsvm text to MultiSlot text: the loop behind `psrt.data.convert.libsvm`
svmlight           libsvm text to batch arrays: the loop behind `psrt.data.formats.libsvm`
destinations       Which trainer a record goes to in a global shuffle: drawn by number, or the
                   hash of a text
delimited          Delimited text (CSV, TSV) to ranges: the cells of lines, the values of cells
pairs              Lines of `name:value` to ranges: the values of the names that are wanted
cells              Values in ranges of a text to numbers and hashes: the loops behind
                   `psrt.data.formats.cells`
"""

from __future__ import annotations

from psrt.kernels.text import (
    cells,
    criteo,
    delimited,
    destinations,
    libsvm,
    multislot,
    pairs,
    prefixes,
    records,
    svmlight,
    text,
)
from psrt.kernels.text.cells import hash_texts
from psrt.kernels.text.criteo import CATEGORIES, INTEGERS, MISSING, bucket_integers
from psrt.kernels.text.delimited import LINES, POSITION, ROWS, STATUS
from psrt.kernels.text.libsvm import BAD_INDEX, BAD_LABEL, BAD_VALUE, NO_COLON
from psrt.kernels.text.lines import (
    VALUE_BYTES,
    append_floats,
    append_ids,
    format_rows,
    row_bytes,
)
from psrt.kernels.text.multislot_records import parse_records
from psrt.kernels.text.multislot_rows import parse_rows
from psrt.kernels.text.prefixes import hash_words
from psrt.kernels.text.records import WORD_BYTES
from psrt.kernels.text.text import DONE, NEWLINE, RETURN, SPACE

__all__ = [
    "BAD_INDEX",
    "BAD_LABEL",
    "BAD_VALUE",
    "CATEGORIES",
    "DONE",
    "INTEGERS",
    "LINES",
    "MISSING",
    "NEWLINE",
    "NO_COLON",
    "POSITION",
    "RETURN",
    "ROWS",
    "SPACE",
    "STATUS",
    "VALUE_BYTES",
    "WORD_BYTES",
    "append_floats",
    "append_ids",
    "bucket_integers",
    "cells",
    "criteo",
    "delimited",
    "destinations",
    "format_rows",
    "hash_texts",
    "hash_words",
    "libsvm",
    "multislot",
    "pairs",
    "parse_records",
    "parse_rows",
    "prefixes",
    "records",
    "row_bytes",
    "svmlight",
    "text",
]
