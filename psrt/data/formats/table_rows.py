"""Cells of a table to slots: the lines just cut of a file, column by column.

An illegal value raises `Refused`, see `psrt.data.formats.cut_lines`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from psrt.core.errors import ConfigError, DataError
from psrt.core.tensors import Ragged
from psrt.core.types import I64, U8, Array
from psrt.data.formats.cells import BadValue, TextCells, dense_column, ragged_column
from psrt.data.formats.cut_lines import Refused
from psrt.data.formats.fields import Column, Field, check_cells, check_unique
from psrt.data.slots import Batch


def check_fields(fields: Sequence[Field]) -> None:
    """Raise `ConfigError` for fields that cells cannot feed."""
    separators: dict[Column, str] = {}
    for field in fields:
        check_cells(field)
        column, mark = field.columns[0], field.separator
        # Cells are split in place, and so can be split by one separator only.
        if mark and separators.setdefault(column, mark) != mark:
            raise ConfigError(
                f"data.columns.{field.slot.name}: column {column!r} has two separators, "
                f"{separators[column]!r} and {mark!r}."
            )


class TableRows:
    """Lines of one file, of `width` cells each, to slots; raises `DataError` for missing
    columns."""

    def __init__(
        self, path: str, fields: Sequence[Field], names: Sequence[str], width: int
    ) -> None:
        self._path, self._names, self._width = path, names, width
        # Cells are split in place, so that slots of whole ones go first.
        self._fields = sorted(fields, key=lambda field: bool(field.separator))
        self._columns = {f.slot.name: [self._index(c, f) for c in f.columns] for f in fields}

    def piece(self, text: U8, lines: I64, starts: I64, stops: I64) -> Batch:
        """Return the examples of n lines with cells at `starts` … `stops` (width, n) of `text`.

        `lines` (n,) int64 are the lines of the file before each; raises `Refused`.
        """
        read: Batch = {}
        for field in self._fields:
            cells = [
                TextCells(text, np.ascontiguousarray(starts[c]), np.ascontiguousarray(stops[c]))
                for c in self._columns[field.slot.name]
            ]
            read[field.slot.name] = self._slot(field, lines, cells)
        return {name: read[name] for name in self._columns}

    def _index(self, column: Column, field: Field) -> int:
        if isinstance(column, int) and 0 <= column < self._width:
            return column
        names = self._names[: self._width]
        if column in names:
            check_unique(self._path, column, names, field)
            return names.index(str(column))
        known = ", ".join(self._names) or f"0 … {self._width - 1}"
        raise DataError(
            f"{self._path} has no column {column!r}, which slot {field.slot.name!r} takes.",
            hint=f"Its columns are {known}; [data.columns] maps slots to them.",
        )

    def _slot(self, field: Field, lines: I64, columns: list[TextCells]) -> Array | Ragged:
        if field.slot.size is None or field.separator:
            ragged = self._read(ragged_column, columns[0], field, lines, 0)
            return ragged if field.slot.size is None else self._rectangle(ragged, field, lines)
        dtype = np.float32 if field.kind == "float" else np.int64
        out = np.empty((len(lines), len(columns)), dtype)
        for place, cells in enumerate(columns):
            out[:, place] = self._read(dense_column, cells, field, lines, place)
        return out

    def _read(self, read: Any, cells: TextCells, field: Field, lines: I64, place: int) -> Any:
        try:
            return read(cells, field)
        except BadValue as bad:
            found = repr(bad.found)
            raise self._bad(bad.row, lines, field, place, bad.expected, found) from None

    def _rectangle(self, ragged: Ragged, field: Field, lines: I64) -> Array:
        size = field.slot.size or 0
        lengths = np.diff(ragged.offsets)
        if wrong := np.flatnonzero(lengths != size).tolist():
            expected, found = f"{size} values between {field.separator!r}", str(lengths[wrong[0]])
            raise self._bad(wrong[0], lines, field, 0, expected, found)
        return ragged.values.reshape(-1, size)

    def _bad(
        self, row: int, lines: I64, field: Field, place: int, expected: str, found: str
    ) -> Refused:
        column = field.columns[place]
        error = DataError(
            f"{self._path}, line {lines[row] + 1}, column {column!r}: expected {expected}, "
            f"found {found}.",
            hint=f"It feeds slot {field.slot.name!r} as {field.kind}; see [data.columns].",
        )
        return Refused(row, error)
