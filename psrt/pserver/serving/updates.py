"""Admitted gradients into tables, and tables into replies.

Nothing here decides or waits. One thread at a time calls `close_round`, since rounds follow each
other; any number of handler threads call `apply_now` and `read`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from psrt.core.specs import rate_at
from psrt.core.tracing import traced
from psrt.core.types import F32, I32, I64, Array
from psrt.kernels.optimizers import scale_
from psrt.kernels.precision import narrow
from psrt.kernels.tables import rows as row_kernels
from psrt.pserver.serving.id_list_cache import IdListCache
from psrt.pserver.serving.parts import (
    ChangedPull,
    DensePull,
    DensePush,
    Push,
    RequestParts,
    RowsPull,
    RowsPush,
)
from psrt.pserver.tables import Meters, RoutedIds, RowsTable
from psrt.rpc import pb
from psrt.rpc.wire import PULL_CHANGED, PULL_DENSE, PULL_ROWS, Empty, Message


@traced("round", lambda pushes, round, meters: {"round": round, "pushes": len(pushes)})
def close_round(pushes: Sequence[Sequence[Push]], round: int, meters: Meters) -> None:
    """Apply one round: `pushes` of each trainer that took part, in trainer order.

    Per table, gradients are summed in that order and scaled by 1 / (number of trainers that took
    part), even if some of them did not touch the table or the row; a table whose first push asks
    for the sum is not scaled. The result equals that of one
    process with the big batch; it depends on neither the arrival order nor the partition.
    """
    meters.pushes.add(len(pushes))
    with meters.apply.time():
        for of_table in _by_table(pushes):
            of = 1 if of_table[0].sums else len(pushes)
            _apply_mean(of_table, of, round, meters)
    meters.rounds.add()


def apply_now(pushes: Sequence[Push], step: int, trainer: int, meters: Meters) -> None:
    """Apply the gradients of one push of `trainer`; `step` counts mini-batches of all trainers."""
    meters.pushes.add()
    _count(pushes, meters, trainer)
    with meters.apply.time():
        for push in pushes:
            _apply(push, step, trainer)


@traced("apply", lambda push, step, trainer: {"table": push.table.spec.name})
def _apply(push: Push, step: int, trainer: int) -> None:
    rate = _rate([push], step)
    if isinstance(push, DensePush):
        push.table.apply(push.gradient, rate, trainer, push.version)
    else:
        push.table.apply(push.rows, push.gradients, rate, push.counts, step + 1)
        push.table.log(trainer, push.rows)


@traced("read")
def read(
    parts: RequestParts, trainer: int, reply: pb.Header, lists: IdListCache, meters: Meters
) -> Message:
    """The reply to the pulls of `trainer`: for each a part with the version read, and tensors.

    Id lists with a number are put into `lists`.
    """
    tensors: list[Array] = []
    pulls = parts.pulls
    meters.blocks_read.add(sum([isinstance(pull, DensePull) for pull in pulls]))
    for pull in pulls:
        if isinstance(pull, DensePull):
            tensors += _read_block(pull, trainer, reply)
        elif isinstance(pull, ChangedPull):
            tensors += _read_changed(pull, trainer, reply, meters, parts.empty)
        else:
            tensors += _read_rows(pull, trainer, reply, lists, meters, parts.empty)
    return Message(reply, tensors)


@traced("snapshot", lambda pull, trainer, reply: {"table": pull.table.spec.name})
def _read_block(pull: DensePull, trainer: int, reply: pb.Header) -> tuple[Array, ...]:
    values, version = pull.table.read(trainer)
    reply.parts.add(kind=PULL_DENSE, table=pull.table.spec.name, version=version)
    return (values,) if pull.precision == "float32" else narrow(values, pull.precision).tensors


def _read_rows(
    pull: RowsPull, trainer: int, reply: pb.Header, lists: IdListCache, meters: Meters, empty: Empty
) -> tuple[Array, ...]:
    rows, version = _rows(pull.table, pull.rows, meters, empty)
    part = reply.parts.add(kind=PULL_ROWS, table=pull.table.spec.name, version=version)
    if pull.number and lists.put(trainer, part.table, pull.number, pull.rows):
        part.keys = pull.number
    return (rows,) if pull.precision == "float32" else narrow(rows, pull.precision).tensors


def _read_changed(
    pull: ChangedPull, trainer: int, reply: pb.Header, meters: Meters, empty: Empty
) -> tuple[I64, F32]:
    table = pull.table
    ids, position = table.changed(trainer, pull.position)
    rows, version = _rows(table, table.route(ids), meters, empty)
    reply.parts.add(kind=PULL_CHANGED, table=table.spec.name, version=version, position=position)
    return ids, rows


@traced("snapshot", lambda table, routed, meters, empty: {"table": table.spec.name})
def _rows(table: RowsTable, routed: RoutedIds, meters: Meters, empty: Empty) -> tuple[F32, int]:
    """Rows (n, width) and the version read."""
    rows = empty((len(routed.ids), table.spec.width))
    version = table.read(routed, rows)
    meters.rows_read.add(len(rows))
    return rows, version


def _by_table(pushes: Sequence[Sequence[Push]]) -> list[list[Push]]:
    """The pushes of each table, in trainer order."""
    groups: dict[str, list[Push]] = {}
    for of_trainer in pushes:
        for push in of_trainer:
            groups.setdefault(push.table.spec.name, []).append(push)
    return list(groups.values())


@traced("apply", lambda pushes, trainers, round, meters: {"table": pushes[0].table.spec.name})
def _apply_mean(pushes: list[Push], trainers: int, round: int, meters: Meters) -> None:
    _count(pushes, meters)
    rate = _rate(pushes, round)
    dense = [push for push in pushes if isinstance(push, DensePush)]
    rows = [push for push in pushes if isinstance(push, RowsPush)]
    if dense:
        dense[0].table.apply_mean([push.gradient for push in dense], trainers, rate)
    if rows:
        _apply_mean_rows(rows, trainers, rate, round + 1)


def _rate(pushes: Sequence[Push], step: int) -> float:
    """The learning rate of an update: that of the first push with one, or of the schedule."""
    sent = next((push.rate for push in pushes if push.rate is not None), None)
    return rate_at(pushes[0].table.spec.learning_rate, step) if sent is None else sent


def _apply_mean_rows(pushes: list[RowsPush], trainers: int, rate: float, now: int) -> None:
    table = pushes[0].table
    if trainers == 1 and len(pushes) == 1:
        table.apply(pushes[0].rows, pushes[0].gradients, rate, pushes[0].counts, now)
        return
    ids, inverse = row_kernels.unique(np.concatenate([push.rows.ids for push in pushes]))
    ends = np.cumsum([len(push.rows.ids) for push in pushes])
    positions = np.split(inverse, ends[:-1])
    total = _summed(len(ids), positions, [push.gradients for push in pushes])
    scale_(total.reshape(-1), 1.0 / trainers)
    table.apply(table.route(ids), total, rate, _summed_counts(len(ids), positions, pushes), now)


def _summed(count: int, positions: Sequence[I32], values: Sequence[F32]) -> F32:
    """(count, width): each row of `values` added at its position, trainer by trainer."""
    total: F32 = np.zeros((count, values[0].shape[1]), np.float32)
    for of_trainer, rows in zip(positions, values, strict=True):
        row_kernels.scatter_add_(total, of_trainer, rows)
    return total


def _summed_counts(count: int, positions: Sequence[I32], pushes: Sequence[RowsPush]) -> F32 | None:
    """Shows and clicks (count, 2) summed over trainers: they are events, so no mean is formed.

    None if no trainer sent any: a round then shows a row once, like the push of one process.
    """
    pairs = zip(positions, pushes, strict=True)
    sent = [(where, push.counts) for where, push in pairs if push.counts is not None]
    if not sent:
        return None
    return _summed(count, [where for where, _ in sent], [counts for _, counts in sent])


def _count(pushes: Sequence[Push], meters: Meters, trainer: int | None = None) -> None:
    """Count gradients, of one `trainer` or of a round, that are about to be applied."""
    rows = [push for push in pushes if isinstance(push, RowsPush)]
    for push in rows:
        meters.pushed(push.table.spec.name, len(push.rows.ids))
    meters.blocks_applied.add(len(pushes) - len(rows))
    meters.staleness([push.table.version - push.version for push in pushes], trainer)
