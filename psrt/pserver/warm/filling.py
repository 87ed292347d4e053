"""A new table filled from the saved parameter that it matches, a step of a walk at a time."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np

from psrt.core.clock import hours_since_1970
from psrt.core.specs import DenseTableSpec
from psrt.core.types import F32, I64
from psrt.pserver.frozen import FrozenPages, long_page, page_of
from psrt.pserver.saved import RowPart, SavedRows, SourceDense, SourceTable
from psrt.pserver.tables import DenseTable, RowsTable, SparseTable
from psrt.pserver.warm.matching import Match
from psrt.pserver.warm.raw_rows import raw_rows

_PIECE_ELEMENTS = 1 << 20


def fill_dense(table: DenseTable, saved: SourceDense, match: Match) -> None:
    """Begin with the saved elements of the block, and with their state and version if kept.

    Elements that a parameter of another shape lacks keep their initial values.
    """
    spec = table.spec
    with table.freeze() as frozen:
        (page,) = frozen.pages()
        values, state = page["values"].copy(), page["state"]
        meta = frozen.meta
    end = spec.offset + spec.size
    if match.reshaped:
        for first in range(spec.offset, end, _PIECE_ELEMENTS):
            last = min(first + _PIECE_ELEMENTS, end)
            _take_common(values[first - spec.offset : last - spec.offset], spec, saved, first)
    else:
        values[:] = saved.values(spec.offset, end)
    if match.keeps_state:
        state = saved.state(spec.offset, end)
        meta = meta | {"version": saved.version}
    table.restore([FrozenPages(meta, [{"values": values, "state": state}])])


def _take_common(out: F32, spec: DenseTableSpec, saved: SourceDense, first: int) -> None:
    """Write the elements `first` … of the flat parameter that both shapes have to `out` (n,)."""
    shape = saved.spec.shape
    if len(shape) != len(spec.shape):  # only the flat forms have elements in common
        last = min(first + len(out), math.prod(shape))
        out[: max(0, last - first)] = saved.values(first, last) if last > first else 0.0
        return
    places = np.unravel_index(np.arange(first, first + len(out)), spec.shape)
    is_common = np.logical_and.reduce([at < n for at, n in zip(places, shape, strict=True)])
    if is_common.any():
        flat: I64 = np.ravel_multi_index([at[is_common] for at in places], shape)
        begin, end = int(flat.min()), int(flat.max()) + 1
        out[is_common] = saved.values(begin, end)[flat - begin]


def fill_rows_of(table: RowsTable, saved: SourceTable, match: Match) -> None:
    """Insert the saved rows of the table's virtual shards.

    With its state a table goes on from the version and time of the source, which moments and the
    age of rows count from. Ids that wait for admission are not taken.
    """
    if match.keeps_state:
        with table.freeze() as frozen:
            meta = frozen.meta
        goes_on = dict(saved.progress)
        if "long" in meta:
            goes_on["long"] = meta["long"] | goes_on["long"]
        table.put_facts(meta | goes_on)
    hour = hours_since_1970()
    for group in saved.groups(table.spec.first_shard, table.spec.last_shard):
        _put(table, group, match, hour)


def _put(table: RowsTable, group: SavedRows, match: Match, hour: int) -> None:
    padding, shards = table.spec.padding_id, table.spec.virtual_shards
    rows, weights = group.rows, group.weights(_width_of(match))
    grown = group.grown() if group.long is not None else None
    if padding is not None and (rows.ids == padding).any():
        keeps = rows.ids != padding
        grown = None if grown is None else (np.cumsum(keeps) - 1)[grown[keeps[grown]]]
        rows, weights = _chosen(rows, np.flatnonzero(keeps)), weights[keeps]
    short = table.parts[0]
    raw = _raw(short, rows, weights[:, : short.spec.width], match, hour)
    table.put_page(page_of("rows", raw, shards, 0))
    if len(table.parts) == 1:
        return
    long, begins = table.parts[1], short.spec.width
    if match.keeps_state and group.long is not None:
        part = group.long
        raw = _raw(long, part, part.weights, match, hour)
    else:
        if grown is None:  # a source whose rows do not grow: those with weights there have
            grown = np.flatnonzero(weights[:, begins:].any(axis=1))
        raw = _raw(long, _chosen(rows, grown), weights[grown, begins:], match, hour)
    if len(raw):
        table.put_page(long_page(page_of("rows", raw, shards, 0)))


def _width_of(match: Match) -> int:
    assert not isinstance(match.saved.spec, DenseTableSpec)
    return match.saved.spec.width


def _raw(part: SparseTable, rows: RowPart, weights: F32, match: Match, hour: int) -> F32:
    return raw_rows(part, rows.ids, weights, rows, match.keeps_state, hour)


def _chosen(rows: RowPart, places: I64) -> RowPart:
    """The rows at some places."""
    columns = {each.name: getattr(rows, each.name) for each in fields(rows)}
    return replace(
        rows, **{name: each[places] for name, each in columns.items() if each is not None}
    )
