"""Rows in memory, as a program that serves a model has them, to the arrays of a batch.

Values are read as cells of a file: by the fields of a format, with its hashes, scales and missing
values. So a row has the same ids and floats wherever it comes from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from psrt.core.errors import ConfigError, DataError
from psrt.data.formats.cut_lines import Refused
from psrt.data.formats.fields import Field
from psrt.data.formats.table_rows import TableRows, check_fields
from psrt.data.hashing import ranges_of
from psrt.data.slots import Batch

_SOURCE = "the rows given"


def batch_of(fields: Sequence[Field], columns: Mapping[Any, Sequence[Any]]) -> Batch:
    """Return the slots of n rows; `columns` has n values for each column that a field takes.

    A value is a text, a number, or None for a missing one. Columns by number have that number as
    their key. Raises `DataError` naming row and column.
    """
    check_fields(fields)
    wanted = [column for field in fields for column in field.columns]
    given = {str(name): columns[name] for name in dict.fromkeys(wanted) if name in columns}
    lengths = {name: len(values) for name, values in given.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"{_SOURCE} have columns of several lengths: {lengths}.")
    rows = next(iter(lengths.values()), 0)
    cells = [_cell(value, row) for values in given.values() for row, value in enumerate(values, 1)]
    text, starts, stops = ranges_of(cells)
    by_name = [replace(field, columns=tuple(map(str, field.columns))) for field in fields]
    table, shape = TableRows(_SOURCE, by_name, list(given), len(given)), (len(given), rows)
    lines = np.arange(rows, dtype=np.int64)
    try:
        return table.piece(text.copy(), lines, starts.reshape(shape), stops.reshape(shape))
    except Refused as refused:
        raise refused.error from None


def _cell(value: Any, row: int) -> bytes:
    if value is None or value != value:  # pandas has a NaN for a missing number
        return b""
    if isinstance(value, bool | np.bool_):
        return b"1" if value else b"0"
    if not isinstance(value, str | bytes | int | float | np.number):
        raise DataError(
            f"{_SOURCE}, line {row}: {value!r} is no cell.",
            hint="Give texts, numbers, or None for a missing value.",
        )
    cell = value if isinstance(value, bytes) else str(value).encode()
    if b"\n" in cell:
        raise DataError(f"{_SOURCE}, line {row}: {value!r} has a line end, which no cell may have.")
    return cell


def fields_in(format: object, name: str) -> Sequence[Field]:
    """Return the fields of a format; raises `ConfigError` for one without columns."""
    fields: Sequence[Field] | None = getattr(format, "fields", None)
    if fields is None:
        raise ConfigError(
            f"the model was trained on files of format {name}, which has no columns.",
            hint="Feed the arrays themselves: run({name: array, …}).",
        )
    return fields
