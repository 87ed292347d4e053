"""Parsers and writers of text. In reading order:

digits           short numbers, eight characters at a time
text             scanners and writers of numbers
multislot        slots of a MultiSlot line, read to words of memory
multislot_lines  MultiSlot lines to the arrays of batches, and to records
lines            arrays to MultiSlot lines
records          records of examples in memory: batches in, batches out
criteo           the public Criteo table to arrays
prefixes         words in front of the slots of a line
libsvm           libsvm text to MultiSlot text and to batch arrays
destinations     the trainer of each record in a global shuffle
delimited        delimited text (CSV, TSV) to ranges of cells and values
pairs            lines of `name:value` to ranges of values
cells            values in ranges to numbers and hashes
"""

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
    text,
)
from psrt.kernels.text.cells import hash_texts
from psrt.kernels.text.criteo import CATEGORIES, INTEGERS, MISSING, bucket_integers
from psrt.kernels.text.delimited import LINES, POSITION, ROWS, STATUS
from psrt.kernels.text.lines import VALUE_BYTES, append_floats, append_ids, format_rows, row_bytes
from psrt.kernels.text.multislot_lines import parse_records, parse_rows
from psrt.kernels.text.prefixes import hash_words
from psrt.kernels.text.records import WORD_BYTES
from psrt.kernels.text.text import DONE, NEWLINE, RETURN, SPACE

__all__ = ["CATEGORIES", "DONE", "INTEGERS", "LINES", "MISSING", "NEWLINE", "POSITION", "RETURN"]
__all__ += ["ROWS", "SPACE", "STATUS", "VALUE_BYTES", "WORD_BYTES", "append_floats", "append_ids"]
__all__ += ["bucket_integers", "cells", "criteo", "delimited", "destinations", "format_rows"]
__all__ += ["hash_texts", "hash_words", "libsvm", "multislot", "pairs", "parse_records"]
__all__ += ["parse_rows", "prefixes", "records", "row_bytes", "text"]
