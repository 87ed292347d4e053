"""Columns of an Arrow table to the numbers of a slot.

Lists give their values, strings their hashes (equal to those of delimited text), nulls are missing
values. A value that does not fit the field is a `DataError` naming file, row and column. pyarrow
has no types for mypy: its objects are `Any` here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.core.errors import DataError
from psrt.core.extras import required
from psrt.core.tensors import Ragged
from psrt.core.types import F64, I64, Array
from psrt.data.formats.cells import BadValue, TextCells, bucketed, floats, in_buckets, scaled, texts
from psrt.data.formats.fields import Column, Field, check_unique
from psrt.data.slots import ends_of
from psrt.kernels.text import MISSING, NEWLINE

_MAX_WHOLE = 1 << 53
_TEXTS = [size + kind for kind in ("string", "binary") for size in ("", "large_")]
_TEXTS += ["string_view", "binary_view"]


class ColumnReader:
    """Columns of one row group to slots; `first_row` rows of the file precede it."""

    def __init__(self, path: str, first_row: int) -> None:
        self._path, self._first_row = path, first_row

    def slot(self, table: Any, field: Field) -> Array | Ragged:
        columns = [self._column(table, column, field) for column in field.columns]
        if _is_list(columns[0].type):
            return self._lists(columns[0], field)
        if field.slot.size is None:
            return self._single(columns[0], field)
        if len(columns) != field.slot.size:
            found = f"{len(columns)} columns of {columns[0].type}"
            raise self._bad(-1, field.columns[0], f"lists of {field.slot.size}", found)
        dtype = np.float32 if field.kind == "float" else np.int64
        out = np.empty((table.num_rows, len(columns)), dtype)
        for place, column in enumerate(columns):
            out[:, place] = self._values(column, field, place)
        return out

    def _column(self, table: Any, column: Column, field: Field) -> Any:
        names = table.schema.names
        if column not in names and not (isinstance(column, int) and 0 <= column < len(names)):
            raise DataError(
                f"{self._path} has no column {column!r}, which slot {field.slot.name!r} takes.",
                hint=f"Its columns are {', '.join(names)}; see [data.columns] of the job.",
            )
        if column in names:
            check_unique(self._path, column, names, field)
        array = table.column(column)
        combine = getattr(array, "combine_chunks", None)
        array = combine() if combine else array
        return array.dictionary_decode() if hasattr(array, "dictionary_decode") else array

    def _lists(self, column: Any, field: Field) -> Array | Ragged:
        lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        offsets = ends_of(lengths)
        values = self._values(column.flatten(), field, 0, offsets)
        values = values.astype(np.float32) if field.kind == "float" else values
        if field.slot.size is None:
            return Ragged(values, offsets)
        if wrong := np.flatnonzero(lengths != field.slot.size).tolist():
            found = f"{lengths[wrong[0]]}"
            raise self._bad(wrong[0], field.columns[0], f"a list of {field.slot.size}", found)
        return values.reshape(-1, field.slot.size)

    def _single(self, column: Any, field: Field) -> Ragged:
        """One value per row; none where it is missing and has no id for that."""
        offsets = np.arange(len(column) + 1)
        if field.kind in ("float", "id") and field.missing is None:
            present = column.is_valid().to_numpy(zero_copy_only=False)
            offsets = ends_of(present)
            column = column.drop_null()
        values = self._values(column, field, 0, offsets)
        return Ragged(values.astype(np.float32) if field.kind == "float" else values, offsets)

    def _values(self, column: Any, field: Field, place: int, offsets: I64 | None = None) -> Array:
        """Return one value per element, (n,) float64 or int64; `offsets` are those of the rows."""
        name = field.columns[place]
        try:
            return _read(column, field)
        except BadValue as bad:
            row = bad.row
            if offsets is not None:
                row = int(np.searchsorted(offsets, row, "right")) - 1
            raise self._bad(row, name, bad.expected, bad.found) from None
        except (TypeError, ValueError, NotImplementedError) as error:
            raise DataError(
                f"{self._path}, column {name!r}: {column.type} cannot be read as {field.kind} "
                f"for slot {field.slot.name!r} ({error}).",
                hint="Set the kind of the slot in [data.columns].",
            ) from error

    def _bad(self, index: int, column: Column, expected: str, found: str) -> DataError:
        where = f", row {self._first_row + index + 1}" if index >= 0 else ""
        return DataError(
            f"{self._path}{where}, column {column!r}: expected {expected}, found {found}."
        )


def _read(column: Any, field: Field) -> Array:
    """Return the elements as numbers; raises `BadValue`, or an error of pyarrow."""
    if field.kind == "text":
        return texts(_texts(column), field)
    if field.kind == "bucket":
        return bucketed(_integers(column.fill_null(MISSING)), field)
    if field.values is not None:
        return _named(column, field)
    column = _filled(column, field)
    if field.kind == "id":
        return in_buckets(_integers(column), field)
    return _finite(_floats(column), field)


def _named(column: Any, field: Field) -> Array:
    try:
        return floats(_texts(column), field)
    except BadValue as bad:
        raise BadValue(bad.row, bad.expected, repr(bad.found)) from None


def _filled(column: Any, field: Field) -> Any:
    if not column.null_count:
        return column
    if field.missing is None:
        row = int(np.argmin(column.is_valid().to_numpy(zero_copy_only=False)))
        raise BadValue(row, "a value", "null")
    return column.fill_null(field.missing)


def _floats(column: Any) -> F64:
    types = required("pyarrow.types", "parquet", "reading numbers")
    try:
        values: F64 = column.cast("float64").to_numpy(zero_copy_only=False)
    except ValueError:
        if types.is_integer(column.type):
            _refuse_beyond_float(column.to_numpy(zero_copy_only=False))
        raise
    return values


def _refuse_beyond_float(integers: Array) -> None:
    beyond = (integers > _MAX_WHOLE) | (integers < -_MAX_WHOLE)
    if beyond.any():
        row = int(np.argmax(beyond))
        expected = "an integer within ±2^53, as all of those are floats"
        raise BadValue(row, expected, str(integers[row]))


def _finite(values: F64, field: Field) -> Array:
    with np.errstate(over="ignore"):
        bad = np.flatnonzero(~np.isfinite(values.astype(np.float32))).tolist()
    if bad:
        expected = "a number within the range of float32"
        raise BadValue(bad[0], expected, str(values[bad[0]]))
    return scaled(values, field)


def _is_list(type: Any) -> bool:
    types = required("pyarrow.types", "parquet", "reading lists")
    checks = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    return any(check(type) for check in checks)


def _integers(column: Any) -> I64:
    """Return 64-bit patterns; raises `TypeError` for floats and text."""
    types = required("pyarrow.types", "parquet", "reading integers")
    if not (types.is_integer(column.type) or types.is_boolean(column.type)):
        raise TypeError("it is not an integer")
    if column.type != "uint64":
        column = column.cast("int64")
    values: I64 = column.to_numpy(zero_copy_only=False).view(np.int64)
    return values


def _texts(column: Any) -> TextCells:
    """Return the ranges of strings; a null is an empty one."""
    if str(column.type) not in _TEXTS:
        raise TypeError("it is not text")
    column = column.cast("large_binary").fill_null(b"")
    _, places, data = column.buffers()
    offsets = np.frombuffer(places, np.int64, len(column) + 1, column.offset * 8)
    # Scanners need a newline behind the last range.
    text = np.append(np.frombuffer(data or b"", np.uint8), np.uint8(NEWLINE))
    return TextCells(text, offsets[:-1], offsets[1:])
