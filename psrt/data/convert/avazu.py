"""The table of Avazu's click-through contest, `train.csv` with its header, as MultiSlot files.

    click           float × 1
    hour_of_day     id × 1       0 … 23, of the column `hour`, YYMMDDHH
    all others      id × 1       one slot for each column but `id`: `psrt.hash_ids` of the text,
                                 salted with the column's number from 0, so that columns share a
                                 table without sharing rows

A job that reads `train.csv` itself has the same ids by `kind = "text"` with these salts.
The test split depends on the text of a row and the seed only. A job needs a distributed table, or
takes ids modulo the rows of its table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from psrt.core.errors import DataError
from psrt.data.convert.sharded import Destination, ShardedWriter, Split, write_split
from psrt.data.convert.splitter import Record, drawn_lines, fields_of, numbered_lines
from psrt.data.hashing import hash_ids
from psrt.data.slots import Slot

_SITES = ("site_id", "site_domain", "site_category", "app_id", "app_domain", "app_category")
_DEVICES = ("device_id", "device_ip", "device_model", "device_type", "device_conn_type")
_CODES = tuple(f"C{i}" for i in range(14, 22))
HASHED = ("C1", "banner_pos", *_SITES, *_DEVICES, *_CODES)
COLUMNS = ("id", "click", "hour", *HASHED)
SLOTS = (Slot("click", "float", 1), *(Slot(name, "uint64", 1) for name in ("hour_of_day", *HASHED)))
_CACHED_VALUES = 1 << 20


def convert(
    inputs: Sequence[Path | str],
    destination: Destination,
    split: Split,
    on_bytes: Callable[[int], None] = lambda size_bytes: None,
) -> ShardedWriter:
    """Convert tables in order, each with its header."""
    return write_split(destination, split, drawn_lines(_records(inputs, on_bytes), split.seed))


def _records(inputs: Sequence[Path | str], on_bytes: Callable[[int], None]) -> Iterator[Record]:
    header = ",".join(COLUMNS).encode()
    for path in inputs:
        for number, line in numbered_lines(path, on_bytes):
            if number > 1:
                click, text = row(path, number, line)
                yield line, [text], click
            elif line.strip() != header:
                raise DataError(
                    f"{path}, line 1: this is not the header of Avazu's train.csv. "
                    "Nothing was written.",
                    hint=f"It is {header.decode()}; test.csv has no clicks.",
                )


def row(path: Path | str, number: int, line: bytes) -> tuple[bool, bytes]:
    """Return whether a row is a click, and its MultiSlot line; raises `DataError`."""
    fields = fields_of(path, number, line, b",", COLUMNS)
    click, hour = fields[1], fields[2]
    if click not in (b"0", b"1") or len(hour) != 8 or not hour.isdigit() or hour[6:] > b"23":
        raise DataError(
            f"{path}, line {number}: expected click 0 or 1 and hour YYMMDDHH, found "
            f"{click.decode('latin-1')!r}, {hour.decode('latin-1')!r}. Nothing was written."
        )
    ids = [id_of(name, value) for name, value in zip(HASHED, fields[3:], strict=True)]
    tokens = " ".join(f"1 {value}" for value in (int(hour[6:]), *ids))
    return click == b"1", f"1 {click.decode()} {tokens}\n".encode()


@lru_cache(_CACHED_VALUES)
def id_of(column: str, value: bytes) -> int:
    """Return the id of a value of a column, 0 … 2⁶³ − 1."""
    return int(hash_ids([value], salt=COLUMNS.index(column))[0])
