"""Rows that a mini-batch needs: one list of distinct ids per table, over all slots that feed it.

`BatchPreparer` runs in a background thread where one reads ahead: it removes duplicates once per
table, so that a row travels once per batch however many slots name it. `bind` runs in the training
thread once the rows have arrived. A padding id is treated like any other id: the pserver reads it
as zeros and ignores its gradient.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from psrt.core.tensors import Ragged
from psrt.core.tracing import traced
from psrt.core.types import F32, I32, I64, Array
from psrt.data.slots import batch_rows
from psrt.data.sources import BEGINNING, Place
from psrt.executor.memory import RowBatch, check_rows, distinct_ids, lookups_by_table
from psrt.executor.program import DerivedIds, check_names, fed_vars
from psrt.graph.program import Program
from psrt.trainer.inputs.counts import NOTHING_COUNTED, Counted, counted_tables, counts_of

Feed: TypeAlias = "dict[str, Array | Ragged]"


@dataclass(frozen=True)
class PreparedBatch:
    """One batch ready to train on.

    `wanted[table]` (n,) holds distinct ids; `index[table][var]` holds, for every id of the slot
    `var`, its position in `wanted[table]`. `epoch` counts from 1; `place` is the end of the batch
    in its files. `counts[table]` (n, 2) are the shows and clicks of these ids, for tables with
    `ShowClick`.
    """

    feed: Feed
    wanted: dict[str, I64]
    index: dict[str, dict[str, I32]]
    examples: int
    epoch: int = 1
    place: Place = BEGINNING
    counts: dict[str, F32] = field(default_factory=dict)


class BatchPreparer:
    """Makes prepared batches of one program, in the order of its steps; belongs to one thread.

    `first_example` is that of `Executor`; `first_step` is the number of the first batch, by which
    random derived ids are drawn.
    """

    def __init__(self, program: Program, first_example: int = 0, first_step: int = 0) -> None:
        self._program, self._step = program, first_step
        self._tables = {table: ids for table, ids in lookups_by_table(program).items() if ids}
        self._fed, self._derived = fed_vars(program), DerivedIds(program, first_example)
        self._counted = counted_tables(program)

    def begin_at(self, step: int) -> None:
        """Prepare the next batch as that of step `step`, from 0."""
        self._step = step

    def prepare(
        self, feed: Mapping[str, Array | Ragged], epoch: int = 1, place: Place = BEGINNING
    ) -> PreparedBatch:
        """Derive ids and remove duplicates; raises `DataError` for a feed that does not fit."""
        fed = self._derived.extend(feed, self._step)
        check_names(fed, self._fed)
        self._step += 1
        batch = prepare(dict(fed), self._tables, epoch, place, self._counted)
        return checked(self._program, batch)


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
    """Return the batch; raise `ProgramError` if an id is no row of a table of fixed height."""
    for table, ids in batch.wanted.items():
        if not program.parameters[table].distributed:
            check_rows(program.parameters[table], ids)
    return batch


@traced("bind")
def bind(prepared: PreparedBatch, rows: Mapping[str, F32]) -> dict[str, RowBatch]:
    """Join the pulled rows of each table with their index, as the executor reads them."""
    return {
        table: RowBatch(ids, rows[table], prepared.index[table])
        for table, ids in prepared.wanted.items()
    }
