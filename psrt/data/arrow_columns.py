"""Columns of an Arrow table to the numbers that a slot takes.

Lists give their values, strings their hashes (those of delimited text), nulls are missing values.
What cannot be read as a field wants it is a `DataError` naming file, row and column. pyarrow has no
types for mypy: its objects are `Any` here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from psrt.core.errors import DataError
from psrt.core.tensors import Ragged
from psrt.core.types import I64, Array
from psrt.data.cells import BadValue, Cells, bucketed, floats, scaled
from psrt.data.extras import required
from psrt.data.fields import Column, Field
from psrt.kernels.cells import hash_texts
from psrt.kernels.criteo import MISSING
from psrt.kernels.text import NEWLINE


class ColumnReader:
    """Columns of one row group to slots; `first_row` rows of the file come before it."""

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
        array = table.column(column)
        combine = getattr(array, "combine_chunks", None)
        array = combine() if combine else array
        return array.dictionary_decode() if hasattr(array, "dictionary_decode") else array

    def _lists(self, column: Any, field: Field) -> Array | Ragged:
        lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        values = self._values(column.flatten(), field, 0, inner=True)
        values = values.astype(np.float32) if field.kind == "float" else values
        if field.slot.size is None:
            offsets = np.zeros(len(lengths) + 1, np.int64)
            np.cumsum(lengths, out=offsets[1:])
            return Ragged(values, offsets)
        if wrong := np.flatnonzero(lengths != field.slot.size).tolist():
            found = f"{lengths[wrong[0]]}"
            raise self._bad(wrong[0], field.columns[0], f"a list of {field.slot.size}", found)
        return values.reshape(-1, field.slot.size)

    def _single(self, column: Any, field: Field) -> Ragged:
        """A value per row, or none where it is missing and has no id for that."""
        offsets = np.arange(len(column) + 1)
        if field.kind in ("float", "id") and field.missing is None:
            present = column.is_valid().to_numpy(zero_copy_only=False)
            np.cumsum(present, out=offsets[1:])
            column = column.drop_null()
        values = self._values(column, field, 0)
        return Ragged(values.astype(np.float32) if field.kind == "float" else values, offsets)

    def _values(self, column: Any, field: Field, place: int, inner: bool = False) -> Array:
        """One value per element, (n,): float64 or int64."""
        name = field.columns[place]
        try:
            if field.kind == "text":
                return _hashes(column, field)
            if field.kind == "bucket":
                return bucketed(_integers(column.fill_null(MISSING)), field)
            if field.values is not None:
                return self._named(column, field, place)
            column = self._filled(column, field, name, inner)
            if field.kind == "id":
                return _integers(column)
            return self._finite(column.cast("float64").to_numpy(zero_copy_only=False), field, name)
        except (TypeError, ValueError, NotImplementedError) as error:
            raise DataError(
                f"{self._path}, column {name!r}: {column.type} cannot be read as {field.kind} "
                f"for slot {field.slot.name!r} ({error}).",
                hint="Set the kind of the slot in [data.columns].",
            ) from error

    def _named(self, column: Any, field: Field, place: int) -> Array:
        try:
            return floats(_texts(column), field)
        except BadValue as bad:
            raise self._bad(bad.row, field.columns[place], bad.expected, repr(bad.found)) from None

    def _filled(self, column: Any, field: Field, name: Column, inner: bool) -> Any:
        if not column.null_count:
            return column
        if field.missing is None:
            at = -1 if inner else int(np.argmin(column.is_valid().to_numpy(zero_copy_only=False)))
            raise self._bad(at, name, "a value", "null")
        return column.fill_null(field.missing)

    def _finite(self, values: Any, field: Field, name: Column) -> Array:
        with np.errstate(over="ignore"):
            bad = np.flatnonzero(~np.isfinite(values.astype(np.float32))).tolist()
        if bad:
            raise self._bad(
                bad[0], name, "a number within the range of float32", str(values[bad[0]])
            )
        return scaled(values, field)

    def _bad(self, index: int, column: Column, expected: str, found: str) -> DataError:
        where = f", row {self._first_row + index + 1}" if index >= 0 else ""
        return DataError(
            f"{self._path}{where}, column {column!r}: expected {expected}, found {found}."
        )


def _is_list(type: Any) -> bool:
    types = required("pyarrow.types", "parquet", "reading lists")
    checks: list[Callable[[Any], bool]] = [
        types.is_list,
        types.is_large_list,
        types.is_fixed_size_list,
    ]
    return any(check(type) for check in checks)


def _integers(column: Any) -> I64:
    """64-bit patterns; a float or text is no id."""
    types = required("pyarrow.types", "parquet", "reading integers")
    if not (types.is_integer(column.type) or types.is_boolean(column.type)):
        raise TypeError("it is not an integer")
    if column.type != "uint64":
        column = column.cast("int64")
    values: I64 = column.to_numpy(zero_copy_only=False).view(np.int64)
    return values


def _texts(column: Any) -> Cells:
    """The ranges of strings; a null is an empty one."""
    types = required("pyarrow.types", "parquet", "reading strings")
    binary = types.is_binary(column.type) or types.is_large_binary(column.type)
    if not binary and not types.is_string(column.type) and not types.is_large_string(column.type):
        raise TypeError("it is not text")
    column = column.fill_null(b"" if binary else "").cast("large_binary")
    _, places, data = column.buffers()
    offsets = np.frombuffer(places, np.int64, len(column) + 1, column.offset * 8)
    # Ranges end before a newline where they are scanned.
    text = np.append(np.frombuffer(data or b"", np.uint8), np.uint8(NEWLINE))
    return Cells(text, offsets[:-1], offsets[1:])


def _hashes(column: Any, field: Field) -> I64:
    cells = _texts(column)
    out = np.empty(len(cells.starts), np.int64)
    hash_texts(cells.text, cells.starts, cells.stops, field.salt, out)
    return out
