"""Files of any format that jobs read, as MultiSlot files of the same slots.

A line holds the values of one example. Ids are unsigned; floats have the digits that give the same
float32 when they are read. Test rows are files of their own, or depend on the line that is
written and the seed only. A malformed row is an error naming file and line: nothing is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from psrt.core.tensors import Ragged
from psrt.core.types import I64, Array
from psrt.data.convert.sharded import (
    Destination,
    Drawn,
    Lines,
    ShardedWriter,
    Split,
    lines_of,
    write_split,
)
from psrt.data.formats import Format
from psrt.data.reading import reader_of
from psrt.data.slots import Batch, batch_rows
from psrt.data.sources import Files
from psrt.kernels.text import NEWLINE, VALUE_BYTES, append_floats, append_ids, hash_texts

_ROWS_PER_CALL = 1024  # their text stays in the processor's cache while slots are appended
_HASH_BITS, _DRAW_BITS = 63, 53


def convert(
    inputs: Sequence[Path | str],
    format: Format,
    destination: Destination,
    split: Split,
    tests: Sequence[Path | str] = (),
    on_bytes: Callable[[int], None] = lambda size_bytes: None,
) -> ShardedWriter:
    """Convert `inputs` in order and set a share of them aside, or, if given, `tests` instead."""
    train, held_back = (_drawn(paths, format, split.seed, on_bytes) for paths in (inputs, tests))
    return write_split(destination, split, train, held_back if tests else None)


def _drawn(
    paths: Sequence[Path | str], format: Format, seed: int, on_bytes: Callable[[int], None]
) -> Iterator[Drawn]:
    reader = reader_of(format, _ROWS_PER_CALL, Files(), on_bytes)
    for path in paths:
        for batch in reader.read(path):
            yield lines_of_batch(batch, seed)
    if (last := reader.finish()) is not None:
        yield lines_of_batch(last, seed)


def lines_of_batch(batch: Batch, seed: int = 0) -> Drawn:
    """The MultiSlot lines of a batch, and a number in [0, 1) for each, of its text and `seed`."""
    rows = batch_rows(batch)
    slots = [_flat(fed, rows) for fed in batch.values()]
    room = sum(np.diff(offsets) + 1 for _, offsets in slots) * VALUE_BYTES
    stops: I64 = np.cumsum(room)
    starts, out = stops - room, np.empty(int(stops[-1]), np.uint8)
    ends = starts.copy()
    for values, offsets in slots:
        append = append_floats if values.dtype == np.float32 else append_ids
        append(values, offsets, out, ends)
    out[ends - 1] = NEWLINE
    hashes = np.empty(rows, np.int64)
    hash_texts(out, starts, ends, seed, hashes)
    draws = (hashes >> (_HASH_BITS - _DRAW_BITS)) / (1 << _DRAW_BITS)
    return Lines(np.zeros(rows, np.uint8), lines_of(out, ends, starts)), draws


def _flat(fed: Array | Ragged, rows: int) -> tuple[Array, I64]:
    """All values of a slot, and the offsets of each example's."""
    if isinstance(fed, Ragged):
        return np.ascontiguousarray(fed.values), np.ascontiguousarray(fed.offsets)
    values = np.ascontiguousarray(fed).reshape(-1)
    return values, np.arange(rows + 1) * (len(values) // rows)
