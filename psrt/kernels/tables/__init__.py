"""tables: files in reading order.

growable_memory  Memory for rows of tables: a slab that grows where it lies
routing          Which stripe of a table has which ids of a batch
initialize       What a parameter holds before its first update: a pure function of (seed, key,
                 column)
admission        Which ids that have no row yet may have one: counted while they wait, or drawn
row_eviction     What rows of a table remember of their life, and which of them are at its end
row_layout       What lies where in a row of a sparse table, in words of 4 bytes
leaves           The index of a table's rows by id, cell by cell: extendible hashing over small
                 tables
id_index         The index of a table's rows by id: owns directory, leaves and hashes (see
                 `leaves`)
slab             Fused passes over one stripe of a sparse table: find rows by id, to read or to
                 update them
row_store        Rows by id in memory: an index and a slab, kept in step
row_update       One batch of gradients on its way into rows, as pservers and trainers with a
                 table apply it
half_rows        Rows whose weights are stored in 16 bits: read, begun, and moved on float32
                 images of them
rows             Rows chosen by id or index: dedupe, gather, scatter, merge, and partition
                 among pservers
agreement        Geo's arithmetic: what a trainer has changed since it agreed with the others,
                 and the next time
"""

from __future__ import annotations

from psrt.kernels.tables import admission, agreement, initialize, routing, row_eviction, rows
from psrt.kernels.tables.admission import BUCKET
from psrt.kernels.tables.growable_memory import Slab
from psrt.kernels.tables.half_rows import HalfRowStore
from psrt.kernels.tables.initialize import (
    CONSTANT,
    encode,
    fill_block,
    fill_rows,
    random_bits,
    row_bits,
)
from psrt.kernels.tables.leaves import CELLS, HASH_BYTES, SLOTS, limit_of
from psrt.kernels.tables.row_eviction import AGE_BINS, KEPT, ONE_SHOW_EACH, REASONS
from psrt.kernels.tables.row_layout import ID_WORD, RowLayout, row_layout, table_layout
from psrt.kernels.tables.row_store import VERSION_MASK, RowStore, Start, no_hints
from psrt.kernels.tables.row_update import RowUpdate
from psrt.kernels.tables.rows import CellBuffer, as_rows, gather, unique, unique_of

__all__ = [
    "AGE_BINS",
    "BUCKET",
    "CELLS",
    "CONSTANT",
    "HASH_BYTES",
    "ID_WORD",
    "KEPT",
    "ONE_SHOW_EACH",
    "REASONS",
    "SLOTS",
    "VERSION_MASK",
    "CellBuffer",
    "HalfRowStore",
    "RowLayout",
    "RowStore",
    "RowUpdate",
    "Slab",
    "Start",
    "admission",
    "agreement",
    "as_rows",
    "encode",
    "fill_block",
    "fill_rows",
    "gather",
    "initialize",
    "limit_of",
    "no_hints",
    "random_bits",
    "routing",
    "row_bits",
    "row_eviction",
    "row_layout",
    "rows",
    "table_layout",
    "unique",
    "unique_of",
]
