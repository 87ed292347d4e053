"""Rows by id: index, slab, admission, eviction. In reading order:

growable_memory  memory for rows: a slab that grows in place
routing          grouping of a batch's ids by stripe
initialize       initial values: pure functions of (seed, key, column)
admission        admission of ids that have no row yet
row_eviction     per-row counters and eviction tests
row_layout       the layout of a row in words of 4 bytes
leaves           the index by id, cell by cell: extendible hashing over small tables
id_index         the index by id: owner of directory, leaves and hashes
row_lookup       lookups of rows by id, from hints or by probes of the index
rows             rows by id or index: dedupe, gather, scatter, merge, partition
row_access       fused passes over a stripe: reads, touches and new rows
row_store        rows by id in memory: an index and a slab
row_update       an update of rows by one batch of gradients
copy_on_write    copies of records before they change, for freezes
half_rows        rows with weights stored in 16 bits
agreement        Geo's arithmetic: deltas and the merge of agreed values
"""

from psrt.kernels.tables import (
    admission,
    agreement,
    copy_on_write,
    initialize,
    routing,
    row_eviction,
    rows,
)
from psrt.kernels.tables.admission import BUCKET, BUCKET_WORDS
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

__all__ = ["AGE_BINS", "BUCKET", "BUCKET_WORDS", "CELLS", "CONSTANT", "HASH_BYTES", "ID_WORD"]
__all__ += ["KEPT", "ONE_SHOW_EACH", "REASONS", "SLOTS", "VERSION_MASK", "CellBuffer"]
__all__ += ["HalfRowStore", "RowLayout", "RowStore", "RowUpdate", "Slab", "Start", "admission"]
__all__ += ["agreement", "as_rows", "copy_on_write", "encode", "fill_block", "fill_rows", "gather"]
__all__ += ["initialize", "limit_of", "no_hints", "random_bits", "routing", "row_bits"]
__all__ += ["row_eviction", "row_layout", "rows", "table_layout", "unique", "unique_of"]
