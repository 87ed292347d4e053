"""Dense blocks and sparse rows in memory, their updates and limits.

In reading order:

    weight_backups     dense values that trainers pulled, for delay compensation
    helper_threads     threads that take tasks of large requests while their cores are idle
    block_values       values or state of a dense block, copied on write while a reader holds them
    block_update       updates of a dense block: prepared gradient, then the optimizer's formula
    dense_table        one block of a dense parameter: values, optimizer state, version, lock
    fair_lock          a fair readers-writer lock
    admission          decisions on ids that have no row yet
    slab_preallocator  memory for new rows, allocated ahead of requests
    stripe             the rows of some virtual shards, and their lock
    stripe_router      batches of ids, grouped by stripe
    change_log         batches of pushed ids, for trainers under Geo
    hot_ids            the ids that are pulled most
    row_walk           walks over all rows, page by page
    sparse_table       rows by id, over a few stripes
    two_part_table     a sparse table whose rows start short
    memory_limit       the limit of the memory of all tables
    table_registry     the tables of one pserver by name
    meters             the metrics of a pserver
"""

from psrt.pserver.tables.dense_table import DenseTable
from psrt.pserver.tables.helper_threads import HelperThreads
from psrt.pserver.tables.meters import Meters
from psrt.pserver.tables.slab_preallocator import SlabPreallocator
from psrt.pserver.tables.sparse_table import SparseTable
from psrt.pserver.tables.stripe_router import RoutedIds
from psrt.pserver.tables.table_registry import TableRegistry
from psrt.pserver.tables.two_part_table import RowsTable

__all__ = ["DenseTable", "HelperThreads", "Meters", "RoutedIds", "RowsTable", "SlabPreallocator"]
__all__ += ["SparseTable", "TableRegistry"]
