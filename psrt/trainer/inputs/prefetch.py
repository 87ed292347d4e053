"""Which rows a mini-batch needs: one list of distinct ids per table, over all slots that feed it.

`prepare` runs in the background thread: it removes duplicates once per table, so that a row travels
once per batch however many slots name it. `bind` runs in the training thread once the rows are
there. A padding id is an id like any other here: the pserver reads it as zeros and ignores its
gradient.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from psrt.core.tensors import Ragged
from psrt.core.types import F32, I32, I64, Array
from psrt.data.slots import batch_rows
from psrt.data.sources import BEGINNING, Place
from psrt.executor.memory import RowBatch, check_rows, distinct_ids
from psrt.graph.program import Program
from psrt.trainer.inputs.counts import NOTHING_COUNTED, Counted, counts_of

Feed: TypeAlias = "dict[str, Array | Ragged]"


@dataclass(frozen=True)
class PreparedBatch:
    """One batch ready to train on.

    `wanted[table]` (n,) holds distinct ids; `index[table][var]` says, for every id of the slot
    `var`, at which position of `wanted[table]` it stands. `epoch` counts from 1; `place` is where
    the batch ends in the files it is from. `counts[table]` (n, 2) are the shows and clicks of these
    ids, for tables that want them.
    """

    feed: Feed
    wanted: dict[str, I64]
    index: dict[str, dict[str, I32]]
    examples: int
    epoch: int = 1
    place: Place = BEGINNING
    counts: dict[str, F32] = field(default_factory=dict)


def prepare(
    feed: Feed,
    tables: Mapping[str, Sequence[str]],
    epoch: int = 1,
    place: Place = BEGINNING,
    counted: Counted = NOTHING_COUNTED,
) -> PreparedBatch:
    """Remove duplicate ids; `tables` maps each sparse table to the data vars looked up in it.

    Ids of `counted` tables are counted.
    """
    distinct = {table: distinct_ids(feed, slots) for table, slots in tables.items()}
    wanted = {table: ids for table, (ids, _) in distinct.items()}
    index = {table: positions for table, (_, positions) in distinct.items()}
    counts = {
        table: counts_of(feed, index[table], len(wanted[table]), vars)
        for table, vars in counted.items()
        if table in index
    }
    return PreparedBatch(feed, wanted, index, batch_rows(feed), epoch, place, counts)


def checked(program: Program, batch: PreparedBatch) -> PreparedBatch:
    """The same batch; `ProgramError` if an id is no row of a table that is not distributed."""
    for table, ids in batch.wanted.items():
        if not program.parameters[table].distributed:
            check_rows(program.parameters[table], ids)
    return batch


def bind(prepared: PreparedBatch, rows: Mapping[str, F32]) -> dict[str, RowBatch]:
    """What the executor reads lookups from: the pulled rows of each table with their index."""
    return {
        table: RowBatch(ids, rows[table], prepared.index[table])
        for table, ids in prepared.wanted.items()
    }
