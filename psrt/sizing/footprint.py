"""Memory of the tables of one pserver in bytes, by arithmetic over the layout of a row.

A sparse table has slabs of rows and an index of 4-byte cells and 4 bytes of hash a row, both per
stripe, and cells for ids that wait for admission. A dense block has values, optimizer state, and
the copies that readers and rounds work on. Only resident memory counts, not mapped memory that was
never written.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from psrt.core.specs import (
    Admission,
    Async,
    CommunicationMode,
    CountFilter,
    DenseTableSpec,
    Geo,
    Optimizer,
    ShowClick,
    SparseTableSpec,
    Sync,
)
from psrt.kernels.optimizers import OptimizerRule, rule_of
from psrt.kernels.tables import BUCKET, CELLS, HASH_BYTES, RowLayout, limit_of, table_layout

WORD_BYTES = 4
ID_BYTES = 8
WAITING_BYTES = 12
"""A cell of an id that waits for admission: the id, and its count or score."""
ID_LISTS_BYTES = 256 << 20
"""Limit of `psrt.pserver.serving.id_list_cache`."""

_SAMPLED_LEAVES = 1 << 10


@dataclass(frozen=True)
class RowBytes:
    """Bytes of one row of a sparse table; state includes the padding that aligns the next row."""

    header: int
    weights: int
    state: int

    @property
    def total(self) -> int:
        return self.header + self.weights + self.state


@dataclass(frozen=True)
class SparseFootprint:
    """The rows of one table on one pserver, their index, and the cells of waiting ids.

    `waiting_bytes` is the most: as many ids wait for admission as can.
    """

    table: str
    rows: int
    row: RowBytes
    index_bytes: int
    waiting_bytes: int = 0

    @property
    def table_bytes(self) -> int:
        """The size that a pserver reports for the table and compares with `max_bytes`."""
        return self.rows * self.row.total + self.index_bytes

    @property
    def total_bytes(self) -> int:
        return self.table_bytes + self.waiting_bytes


@dataclass(frozen=True)
class DenseFootprint:
    """The dense blocks of one pserver; `copies_bytes` are older values that readers still hold."""

    blocks: int
    values_bytes: int
    state_bytes: int
    copies_bytes: int

    @property
    def total_bytes(self) -> int:
        return self.values_bytes + self.state_bytes + self.copies_bytes


@cache
def layout_of(spec: SparseTableSpec) -> RowLayout:
    """The layout of the rows of a table on a pserver."""
    return table_layout(spec, len(_rule(spec.optimizer).first_state(spec.width)))


@cache
def _rule(optimizer: Optimizer) -> OptimizerRule:
    """The float64 rule: it compiles nothing and has an equal state."""
    return rule_of(optimizer, np.float64)


def row_bytes(spec: SparseTableSpec) -> RowBytes:
    layout = layout_of(spec)
    weights, state = layout.state_at - layout.weights_at, layout.words - layout.state_at
    return RowBytes(layout.header_words * WORD_BYTES, weights * WORD_BYTES, state * WORD_BYTES)


def held_footprint(
    spec: SparseTableSpec, rows: int, stripes: int, fraction: float
) -> SparseFootprint:
    """The `fraction` (0 to 1) of a table of `rows` in all, limited by `max_bytes`; waiting ids."""
    found = sparse_footprint(spec, round(rows * fraction), stripes)
    most_bytes = spec.lifecycle.max_bytes * fraction if spec.lifecycle else 0
    if most_bytes and found.table_bytes > most_bytes:
        found = _largest_within(most_bytes, spec, found.rows, stripes)
    return replace(found, waiting_bytes=_waiting_bytes(spec, fraction))


def _largest_within(
    most_bytes: float, spec: SparseTableSpec, rows: int, stripes: int
) -> SparseFootprint:
    """The largest footprint that fits, of fewer than `rows`."""

    def needed_bytes(kept: int) -> int:
        return sparse_footprint(spec, kept, stripes).table_bytes

    kept = bisect_left(range(rows), most_bytes, key=needed_bytes)
    return sparse_footprint(spec, max(0, kept - 1), stripes)


def _waiting_bytes(spec: SparseTableSpec, fraction: float) -> int:
    """Every virtual shard has whole buckets of its own."""
    buckets = -(-_waiting_ids(spec.admission) // (spec.virtual_shards * BUCKET))
    return round(buckets * spec.virtual_shards * fraction) * BUCKET * WAITING_BYTES


def _waiting_ids(rule: Admission | None) -> int:
    """The most ids that wait; 0 without admission."""
    match rule:
        case CountFilter(count=count) if count > 1:
            return rule.waiting_ids
        case ShowClick(threshold=threshold) if threshold > 0:
            return rule.waiting_ids
    return 0


def sparse_footprint(spec: SparseTableSpec, rows: int, stripes: int) -> SparseFootprint:
    """`rows` of a table on one pserver, spread over `stripes` stripes by hash.

    Rows that start short count as grown.
    """
    if spec.growth is not None:
        return _grown_footprint(spec, spec.growth.embed_width, rows, stripes)
    return SparseFootprint(spec.name, rows, row_bytes(spec), _index_bytes(rows, stripes))


def _grown_footprint(
    spec: SparseTableSpec, embed_width: int, rows: int, stripes: int
) -> SparseFootprint:
    """The sum of two tables, of the short and of the long parts of the rows."""
    short = row_bytes(replace(spec, width=embed_width))
    long = row_bytes(replace(spec, width=spec.width - embed_width, lifecycle=None, growth=None))
    row = RowBytes(
        short.header + long.header, short.weights + long.weights, short.state + long.state
    )
    return SparseFootprint(spec.name, rows, row, 2 * _index_bytes(rows, stripes))


def _index_bytes(rows: int, stripes: int) -> int:
    leaves = stripes * expected_leaves(rows / stripes)
    return round(leaves * CELLS * WORD_BYTES) + rows * HASH_BYTES


def expected_leaves(ids: float) -> float:
    """Expected leaves of an index that has grown to so many ids (`psrt.kernels.tables.leaves`).

    A leaf of depth d expects ids / 2^d of them and is split if that exceeds its limit. No limit is
    below half of another one, so leaves have two depths at most.
    """
    depth = 0
    while ids / 2**depth > _limits(depth)[-1]:
        depth += 1
    limits = _limits(depth)
    split = bisect_left(limits, ids / 2**depth)
    return float(2**depth * (1 + split / len(limits)))


@cache
def _limits(depth: int) -> list[int]:
    """The limits of the leaves of a depth, ascending; a sample of them if they are many."""
    return sorted(limit_of(prefix, depth) for prefix in range(min(2**depth, _SAMPLED_LEAVES)))


def dense_footprint(
    specs: Iterable[DenseTableSpec], mode: CommunicationMode, trainers: int
) -> DenseFootprint:
    """The blocks of one pserver in a job of `trainers`."""
    blocks = list(specs)
    values = sum(spec.size for spec in blocks) * WORD_BYTES
    state = sum(spec.size * _rule(spec.optimizer).state_vectors for spec in blocks)
    return DenseFootprint(len(blocks), values, state * WORD_BYTES, values * _copies(mode, trainers))


def _copies(mode: CommunicationMode, trainers: int) -> int:
    """Copies of the values: one that a reply is sent from during the next update.

    With delay compensation, also one that each trainer has pulled. None in Sync: a round closes
    when all replies of the previous one have arrived.
    """
    if isinstance(mode, Sync):
        return 0
    if isinstance(mode, Async) and mode.dc_asgd:
        return 1 + trainers
    return 1


def remembered_bytes(mode: CommunicationMode, distinct: float) -> float:
    """The most bytes of remembered id lists, or of the log of changed rows in Geo.

    Lists of ids named by pulls fill up to their limit. In Geo nothing is pulled by id, but ids that
    trainers have not read yet are logged: the newest two pushes of each of the `distinct` rows that
    all trainers push between two exchanges, and up to twice that before the log is compacted
    (`psrt.pserver.tables.change_log`).
    """
    return 4 * ID_BYTES * distinct if isinstance(mode, Geo) else ID_LISTS_BYTES


__all__ = ["ID_LISTS_BYTES", "DenseFootprint", "RowBytes", "SparseFootprint", "dense_footprint"]
__all__ += ["held_footprint", "remembered_bytes", "row_bytes", "sparse_footprint"]
