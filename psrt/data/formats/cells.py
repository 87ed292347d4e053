"""Cells of a column, from ranges of text to the numbers of a slot.

Ranges are cells of delimited text; numbers are float64, or int64 patterns of ids. An illegal value
raises `BadValue`, which the caller turns into an error with file and line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from psrt.core.tensors import Ragged
from psrt.core.types import F64, I64, U8, Array
from psrt.data.formats.fields import Field
from psrt.data.formats.multislot import EXPECTED
from psrt.data.hashing import bucketed_ids, hash_ids
from psrt.kernels.text import bucket_integers, delimited
from psrt.kernels.text import cells as kernel
from psrt.kernels.text import text as scan

_SHOWN_BYTES = 40


class BadValue(Exception):
    """Cell `row` holds `found` instead of `expected`."""

    def __init__(self, row: int, expected: str, found: str) -> None:
        super().__init__(row, expected, found)
        self.row, self.expected, self.found = row, expected, found


@dataclass(frozen=True)
class TextCells:
    """Ranges of `text`, which ends in a newline: `starts`, `stops` (n,) int64."""

    text: U8
    starts: I64
    stops: I64

    def bad(self, report: I64, expected: str = "") -> BadValue:
        """Return the exception for the value that a kernel refused."""
        at = int(report[kernel.VALUE])
        found = self.text[self.starts[at] : self.stops[at]].tobytes()[:_SHOWN_BYTES]
        expected = expected or EXPECTED.get(int(report[kernel.STATUS]), "a value")
        return BadValue(at, expected, found.decode("utf-8", "backslashreplace"))

    def split(self, separator: str) -> tuple[I64, TextCells]:
        """Return (offsets, values) of the cells; an empty one has no value."""
        room = int((self.stops - self.starts).sum()) + len(self.starts)
        offsets = np.empty(len(self.starts) + 1, np.int64)
        starts, stops = np.empty(room, np.int64), np.empty(room, np.int64)
        mark = ord(separator or "\n")
        delimited.split_cells(self.text, self.starts, self.stops, mark, offsets, starts, stops)
        count = offsets[-1]
        return offsets, TextCells(self.text, starts[:count], stops[:count])


def dense_column(cells: TextCells, field: Field) -> Array:
    """Return one value per cell, (n,); raises `BadValue`."""
    return READERS[field.kind](cells, field)


def ragged_column(cells: TextCells, field: Field) -> Ragged:
    """Return the values of each cell; a missing one has none, unless it has an id of its own."""
    counts_missing = field.kind in ("text", "bucket") or field.missing is not None
    if field.separator or not counts_missing:
        offsets, cells = cells.split(field.separator)
    else:
        offsets = np.arange(len(cells.starts) + 1)
    try:
        values = dense_column(cells, field)
    except BadValue as bad:
        row = int(np.searchsorted(offsets, bad.row, "right")) - 1
        raise BadValue(row, bad.expected, bad.found) from None
    return Ragged(values.astype(np.float32) if field.kind == "float" else values, offsets)


def floats(cells: TextCells, field: Field) -> F64:
    """Return numbers, or those that `field.values` maps texts to, scaled."""
    if field.values is not None:
        return scaled(named(cells, field, field.values), field)
    report, ties = _report(), np.empty(len(cells.starts), np.int64)
    out = np.empty(len(cells.starts), np.float64)
    missing = np.nan if field.missing is None else field.missing
    kernel.read_floats(cells.text, cells.starts, cells.stops, missing, out, ties, report)
    if report[kernel.STATUS] != scan.DONE:
        raise cells.bad(report)
    for value in ties[: report[kernel.TIES]]:
        out[value] = float(cells.text[cells.starts[value] : cells.stops[value]].tobytes())
    return scaled(out, field)


def named(cells: TextCells, field: Field, values: Mapping[str, float]) -> F64:
    """Return the numbers that `values` maps the texts to, without the blanks around them."""
    starts, stops = cells.starts.copy(), cells.stops.copy()
    while (blank := (starts < stops) & (cells.text[starts] <= scan.SPACE)).any():
        starts += blank
    while (blank := (starts < stops) & (cells.text[stops - 1] <= scan.SPACE)).any():
        stops -= blank
    out = np.full(len(starts), np.nan if field.missing is None else field.missing, np.float64)
    known = dict(zip(hash_ids(list(values)).tolist(), values.values(), strict=True))
    found = np.empty(len(starts), np.int64)
    kernel.hash_texts(cells.text, starts, stops, 0, found)
    for number, value in known.items():
        out[found == number] = value
    legal = np.isin(found, list(known)) | ((starts == stops) & (field.missing is not None))
    if not legal.all():
        row = int(np.argmin(legal))
        shown = cells.text[starts[row] : stops[row]].tobytes()[:_SHOWN_BYTES]
        expected = f"one of {', '.join(map(repr, values))}"
        raise BadValue(row, expected, shown.decode("utf-8", "backslashreplace"))
    return out


def scaled(values: F64, field: Field) -> F64:
    """Return sign(x) · ln(1 + |x|) for fields with `scale = "log"`, else `values`."""
    return np.sign(values) * np.log1p(np.abs(values)) if field.scale == "log" else values


def ids(cells: TextCells, field: Field) -> I64:
    """Return unsigned 64-bit integers as int64 patterns."""
    report, out = _report(), np.empty(len(cells.starts), np.int64)
    refuse = field.missing is None
    kernel.read_ids(cells.text, cells.starts, cells.stops, refuse, field.missing_id, out, report)
    if report[kernel.STATUS] != scan.DONE:
        raise cells.bad(report)
    _refuse_signed(cells, out)
    return in_buckets(out, field)


def _refuse_signed(cells: TextCells, ids: I64) -> None:
    """Raise `BadValue` for an id that is written with a minus: it would be one of 2⁶⁴ − n."""
    for row in np.flatnonzero(ids < 0):
        found = cells.text[cells.starts[row] : cells.stops[row]].tobytes().strip()
        if found.startswith(b"-"):
            expected = 'an id, a whole number from 0 on (kind = "text" takes any text)'
            raise BadValue(int(row), expected, found[:_SHOWN_BYTES].decode())


def in_buckets(ids: I64, field: Field) -> I64:
    """Return ids modulo the field's number of buckets, if it has one."""
    return bucketed_ids(ids, field.buckets)


def texts(cells: TextCells, field: Field) -> I64:
    """Return 63-bit hashes of the texts, with the field's salt."""
    out = np.empty(len(cells.starts), np.int64)
    kernel.hash_texts(cells.text, cells.starts, cells.stops, field.salt, out)
    return in_buckets(out, field)


def buckets(cells: TextCells, field: Field) -> I64:
    """Return ids of the logarithmic buckets of integers."""
    report, out = _report(), np.empty(len(cells.starts), np.int64)
    kernel.read_integers(cells.text, cells.starts, cells.stops, out, report)
    if report[kernel.STATUS] != scan.DONE:
        raise cells.bad(report, "an integer or nothing")
    return bucketed(out, field)


def bucketed(integers: I64, field: Field) -> I64:
    """Return ids of the logarithmic buckets of `integers` (n,)."""
    out = np.empty((len(integers), 1), np.int64)
    bucket_integers(np.ascontiguousarray(integers).reshape(-1, 1), field.salt, out)
    return in_buckets(np.ascontiguousarray(out[:, 0]), field)


READERS = {"float": floats, "id": ids, "text": texts, "bucket": buckets}


def _report() -> I64:
    return np.zeros(kernel.REPORT_CELLS, np.int64)
