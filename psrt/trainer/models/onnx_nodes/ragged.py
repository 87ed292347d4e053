"""Rows of ragged ids pooled by example, as nodes over elements and offsets.

A ragged input is two: its elements (n,), and its offsets (batch + 1,) under `offsets_of`. An
example without elements gets zeros.
"""

from __future__ import annotations

import math

import numpy as np

from psrt.trainer.models.onnx_nodes.table import Drawing


def offsets_of(name: str) -> str:
    """The input that has the offsets of a ragged one."""
    return f"{name}.offsets"


def pooled(d: Drawing, rows: str, ids: str, width: int, pool: str) -> str:
    """Rows (n, width) of ragged `ids` (n,) pooled to (batch, width)."""
    starts, ends = _bounds(d, offsets_of(ids))
    lengths = d.node("Sub", (ends, starts))
    if pool in ("first", "last"):
        return _one_of(d, rows, width, starts, ends, lengths, pool == "first")
    owners = d.node("Unsqueeze", (_owners(d, ids, ends), d.ints(-1)))
    if pool == "max":
        largest = _scattered(d, rows, owners, ends, width, -math.inf, "max")
        has_some = d.node("Greater", (lengths, d.number(0, "int64")))
        column = d.node("Unsqueeze", (has_some, d.ints(-1)))
        return d.node("Where", (column, largest, d.number(0.0)))
    total = _scattered(d, rows, owners, ends, width, 0.0, "add")
    if pool == "sum":
        return total
    at_least_1 = d.node("Max", (lengths, d.number(1, "int64")))
    counts = d.node("Cast", (d.node("Unsqueeze", (at_least_1, d.ints(-1))),), to=_FLOAT)
    return d.node("Div", (total, d.node("Sqrt", (counts,)) if pool == "sqrt" else counts))


_FLOAT = 1
"""Number of float32 among the types of ONNX."""


def _bounds(d: Drawing, offsets: str) -> tuple[str, str]:
    """Starts and ends (batch,) of examples."""
    last = d.ints(np.iinfo(np.int64).max)
    starts = d.node("Slice", (offsets, d.ints(0), d.ints(-1)))
    return starts, d.node("Slice", (offsets, d.ints(1), last))


def _owners(d: Drawing, ids: str, ends: str) -> str:
    """The example (n,) of each element: how many examples have ended before it."""
    size = d.node("Add", (d.node("Shape", (ids,)), d.ints(1)))
    zeros = d.node("Expand", (d.number(0, "int64"), size))
    ones = d.node("Expand", (d.number(1, "int64"), d.node("Shape", (ends,))))
    marks = d.node("ScatterElements", (zeros, ends, ones), axis=0, reduction="add")
    ended = d.node("CumSum", (marks, d.number(0, "int64")))
    return d.node("Slice", (ended, d.ints(0), d.ints(-1)))


def _scattered(
    d: Drawing, rows: str, owners: str, ends: str, width: int, first: float, reduction: str
) -> str:
    """Rows (n, width) reduced to those of their owners (batch, width), from `first` on."""
    shape = d.node("Concat", (d.node("Shape", (ends,)), d.ints(width)), axis=0)
    begun = d.node("Expand", (d.number(first), shape))
    return d.node("ScatterND", (begun, owners, rows), reduction=reduction)


def _one_of(
    d: Drawing, rows: str, width: int, starts: str, ends: str, lengths: str, is_first: bool
) -> str:
    """The first or last row of each example; a row of zeros follows all others."""
    zeros = d.constant(np.zeros((1, width), np.float32))
    more = d.node("Concat", (rows, zeros), axis=0)
    at = starts if is_first else d.node("Sub", (ends, d.ints(1)))
    has_some = d.node("Greater", (lengths, d.number(0, "int64")))
    return d.node("Gather", (more, d.node("Where", (has_some, at, d.ints(-1)))), axis=0)
