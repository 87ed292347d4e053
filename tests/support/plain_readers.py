"""Plain-Python readers of the text formats of docs/how-to/read-data.md: an oracle.

Nothing here knows psrt's parsers: lines are cut by `bytes.split`, numbers read by `int` and
`float`, texts hashed in Python's unbounded integers. A row is a list of values for each slot, ids
as unsigned numbers, floats as the nearest float32. `read_…` give all rows before the first line
that is no row, and the number of that line, None if all are rows.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import zstandard

from psrt.data.slots import Slot

Row: TypeAlias = "list[list[float] | list[int]]"
Reader: TypeAlias = "Callable[[bytes], tuple[list[Row], int | None]]"

_FLOAT = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_MASK = (1 << 64) - 1


class NoRow(Exception):
    """A line that is no row."""


# --- compression ---


def decompressed(data: bytes) -> bytes | None:
    """The text of a file, told by its first bytes; None where it is cut off or damaged."""
    if data.startswith(b"\x1f\x8b"):
        return _gunzipped(data)
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        return _unzstd(data)
    return data


def _gunzipped(data: bytes) -> bytes | None:
    text = b""
    while data:
        member = zlib.decompressobj(wbits=31)
        try:
            text += member.decompress(data) + member.flush()
        except zlib.error:
            return None
        if not member.eof:
            return None
        data = member.unused_data.lstrip(b"\0")  # tapes are padded with zeros (RFC 1952, gzip(1))
    return text


def _unzstd(data: bytes) -> bytes | None:
    text = b""
    while data:
        frame = zstandard.ZstdDecompressor().decompressobj()
        try:
            text += frame.decompress(data)
        except zstandard.ZstdError:
            return None
        if not frame.eof:
            return None
        data = frame.unused_data
    return text


# --- lines ---


def lines_of(text: bytes) -> list[bytes]:
    """Without their ends, which may be CRLF; the last one may have none."""
    lines = text.split(b"\n")
    lines = lines[:-1] if lines[-1] == b"" else lines
    return [line.removesuffix(b"\r") for line in lines]


def rows_of(
    lines: Sequence[bytes], row_of: Callable[[bytes], Row | None], first: int = 1
) -> tuple[list[Row], int | None]:
    rows = []
    for number, line in enumerate(lines, first):
        try:
            row = row_of(line)
        except NoRow:
            return rows, number
        if row is not None:
            rows.append(row)
    return rows, None


def words_of(line: bytes) -> list[bytes]:
    """The words of a line, separated by blanks and tabs."""
    return [word for word in re.split(rb"[ \t]+", line) if word]


# --- values ---


def unsigned(word: bytes) -> int:
    """An id; negative ones stand for their 64 bits."""
    if not re.fullmatch(rb"-?[0-9]+", word):
        raise NoRow(word)
    value = int(word)
    if not -(1 << 63) <= value <= _MASK:
        raise NoRow(word)
    return value & _MASK


def exact(word: bytes) -> float:
    """A number that float32 can hold, before it is rounded."""
    if not _FLOAT.fullmatch(word):
        raise NoRow(word)
    with np.errstate(over="ignore"):
        if not np.isfinite(np.float32(float(word))):
            raise NoRow(word)
    return float(word)


def rounded(value: float) -> float:
    return float(np.float32(value))


def number(word: bytes) -> float:
    return rounded(exact(word))


def hashed(text: bytes, salt: int) -> int:
    """63 bits of FNV-1a (draft-eastlake-fnv), mixed with the salt by SplitMix64's finalizer."""
    value = 0xCBF29CE484222325
    for byte in text:
        value = (value ^ byte) * 0x100000001B3 & _MASK
    return _mixed(value ^ _mixed(salt)) >> 1


def _mixed(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & _MASK
    return x ^ (x >> 31)


# --- MultiSlot ---


def read_multislot(slots: Sequence[Slot]) -> Reader:
    def row_of(line: bytes) -> Row | None:
        words = words_of(line)
        if not words:
            return None
        row: Row = []
        for slot in slots:
            row.append(_slot_of(slot, words))
        if words:
            raise NoRow(line)
        return row

    return lambda text: rows_of(lines_of(text), row_of)


def _slot_of(slot: Slot, words: list[bytes]) -> list[float] | list[int]:
    """Takes the words of one slot from the front."""
    if not words or not re.fullmatch(rb"[0-9]+", words[0]):
        raise NoRow(slot.name)
    count = int(words.pop(0)[:20])
    if count > len(words) or (slot.size is not None and count != slot.size):
        raise NoRow(slot.name)
    taken = [words.pop(0) for _ in range(count)]
    return [number(w) for w in taken] if slot.dtype == "float" else [unsigned(w) for w in taken]


# --- libsvm ---


def read_libsvm(binary: bool) -> Reader:
    """Rows of label, ids, values."""

    def row_of(line: bytes) -> Row | None:
        words = words_of(line)
        if not words or words[0].startswith(b"#"):
            return None
        label = exact(words.pop(0))
        if binary and abs(label) != 1 and rounded(label) != 0:
            raise NoRow(line)
        row: Row = [[float(label == 1) if binary else rounded(label)], [], []]
        for word in words:
            if word.startswith(b"#"):
                break
            index, colon, value = word.partition(b":")
            if not colon or not re.fullmatch(rb"[0-9]{1,18}", index):
                raise NoRow(word)
            row[1].append(int(index))
            row[2].append(number(value))
        return row

    return lambda text: rows_of(lines_of(text), row_of)


# --- pairs ---


def read_pairs(slots: Sequence[Slot], names: Sequence[bytes | int], missing: float) -> Reader:
    """Words of `name:value` between blanks; a slot takes a name, or the n-th word without one.

    Dense floats that are not there at all are `missing`.
    """

    def row_of(line: bytes) -> Row | None:
        if not words_of(line):
            return None
        found: dict[bytes | int, list[bytes]] = {}
        bare = 0
        for word in words_of(line):
            name, colon, value = word.partition(b":")
            if colon and not name:
                raise NoRow(word)
            if not colon and bare > max([n for n in names if isinstance(n, int)], default=-1):
                raise NoRow(word)
            found.setdefault(name if colon else bare, []).append(value if colon else word)
            bare += not colon
        return [
            _named_values(s, found.get(n, []), missing) for s, n in zip(slots, names, strict=True)
        ]

    return lambda text: rows_of(lines_of(text), row_of)


def _named_values(slot: Slot, words: list[bytes], missing: float) -> list[float] | list[int]:
    if slot.dtype == "uint64":
        values = [unsigned(word) for word in words]
        if slot.size not in (None, len(values)):
            raise NoRow(slot.name)
        return values
    numbers = [number(word) if word else rounded(missing) for word in words]
    if slot.size is not None and not numbers:
        return [rounded(missing)] * slot.size
    if slot.size not in (None, len(numbers)):
        raise NoRow(slot.name)
    return numbers


# --- delimited text ---


@dataclass(frozen=True)
class Column:
    """One slot: cells `places` of a row, read as `kind`, see `psrt.data.formats.fields`."""

    places: tuple[int, ...]
    kind: str
    ragged: bool = False
    separator: bytes = b""
    log: bool = False
    salt: int = 0
    missing: float | None = None


def read_delimited(
    columns: Sequence[Column], delimiter: bytes, quote: bytes, header: bool, width: int = 0
) -> Reader:
    """`width` 0 = the cells of the first line."""

    def read(text: bytes) -> tuple[list[Row], int | None]:
        lines = lines_of(text)
        first = next((i for i, line in enumerate(lines) if line), None)
        if first is None:
            return [], None
        try:
            wide = width or len(cells_of(lines[first], delimiter, quote))
        except NoRow:
            return [], first + 1
        if max(place for column in columns for place in column.places) >= wide:
            return [], first + 1

        def row_of(line: bytes) -> Row | None:
            if not line:
                return None
            cells = cells_of(line, delimiter, quote)
            if len(cells) != wide:
                raise NoRow(line)
            return [_column(column, cells) for column in columns]

        return rows_of(lines[header:], row_of, 1 + header)

    return read


def cells_of(line: bytes, delimiter: bytes, quote: bytes) -> list[bytes]:
    """RFC 4180, within a line."""
    if not quote:
        return line.split(delimiter)
    cells, rest = [], line
    while True:
        cell, rest = _first_cell(rest, delimiter, quote)
        cells.append(cell)
        if not rest:
            return cells
        rest = rest[1:]


def _first_cell(rest: bytes, delimiter: bytes, quote: bytes) -> tuple[bytes, bytes]:
    """A cell, and what comes behind it from its delimiter on."""
    if not rest.startswith(quote):
        stop = rest.find(delimiter)
        return (rest, b"") if stop < 0 else (rest[:stop], rest[stop:])
    mark = re.escape(quote)
    found = re.match(mark + rb"((?:[^" + mark + rb"]|" + mark * 2 + rb")*)" + mark, rest)
    if not found:
        raise NoRow(rest)
    behind = rest[found.end() :]
    if behind and not behind.startswith(delimiter):
        raise NoRow(rest)
    return found[1].replace(quote * 2, quote), behind


def _column(column: Column, cells: Sequence[bytes]) -> list[float] | list[int]:
    if not column.ragged and not column.separator:
        return [_value(column, cells[place]) for place in column.places]
    cell = cells[column.places[0]]
    if column.separator:
        parts = cell.split(column.separator) if cell else []
    else:
        parts = [cell] if cell or column.missing is not None or column.kind == "text" else []
    return [_value(column, part) for part in parts]


def _value(column: Column, cell: bytes) -> float | int:
    if column.kind == "text":
        return hashed(cell, column.salt)
    if column.kind == "label":
        if cell.strip(bytes(range(33))) not in (b"0", b"1"):
            raise NoRow(cell)
        return rounded(float(cell.strip(bytes(range(33)))))
    word = cell.strip(b" \t")
    if not word and column.missing is not None:
        return int(column.missing) if column.kind == "id" else rounded(column.missing)
    if column.kind == "id":
        return unsigned(word)
    value = exact(word)
    return rounded(float(np.sign(value) * np.log1p(abs(value))) if column.log else value)
