"""tables: files in reading order.

pulled             What trainers may still compute on: the dense values each of them pulled,
                   for delay compensation
spare_threads      Threads that help with a large request while nothing else needs them
block_update       How gradients move a block: what is done to them first, then the formula of
                   the optimizer
block_values       The values of a block: readers keep what they were shown, a writer copies
                   only what they keep
dense_table        One block of one dense parameter: values, optimizer state, version, lock
fair_lock          A lock for readers and writers, which nobody keeps from others by taking it
                   again and again
admission          Who may own a row: decisions on the ids of one stripe that have none yet
slab_preallocator  Memory for rows to come, made beside the requests that will fill it
stripe             The rows of some virtual shards of one table, and the lock that guards them
change_log         Which rows of a sparse table were pushed when and by whom: what a trainer
                   under Geo has to read
hot_ids            Which ids of a table are pulled most, in a few KiB, whatever the number of
                   ids
routed             A batch of ids, grouped by the stripes of its table
sparse_table       One pserver's share of a sparse table: rows by id, over a few stripes
two_part_table     A sparse table whose rows start short: two tables that look like one
registry           The tables of one pserver by name; they come by registration and stay for
                   the process's life
lifecycle          When rows of a table end: the decisions of one sweep, made before it begins
sweeping           Going through all rows of a table to drop those at their end, in small
                   slices beside training
meters             What a pserver counts, by the names of the stops on a gradient's path
                   (admit, apply, version)
upkeep             Tables kept within their limits beside training, and shrunk when somebody
                   asks
"""

from __future__ import annotations

from psrt.pserver.tables.dense_table import DenseTable
from psrt.pserver.tables.meters import Meters
from psrt.pserver.tables.registry import Tables
from psrt.pserver.tables.routed import Routed
from psrt.pserver.tables.slab_preallocator import SlabPreallocator
from psrt.pserver.tables.spare_threads import SpareThreads
from psrt.pserver.tables.two_part_table import RowsTable
from psrt.pserver.tables.upkeep import Upkeep

__all__ = [
    "DenseTable",
    "Meters",
    "Routed",
    "RowsTable",
    "SlabPreallocator",
    "SpareThreads",
    "Tables",
    "Upkeep",
]
