"""Admitted gradients into tables, and tables into replies.

Nothing here decides or waits. `close_round` is called by one thread at a time (rounds follow each
other); `apply_now` and `read` by any number of handler threads at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from psrt.core.rates import rate_at
from psrt.core.types import F32, Array
from psrt.kernels import rows as row_kernels
from psrt.kernels.dense import scale_
from psrt.pserver.meters import Meters
from psrt.pserver.parts import (
    PULL_DENSE,
    PULL_ROWS,
    DensePull,
    DensePush,
    RowsPull,
    RowsPush,
)
from psrt.rpc import pb
from psrt.rpc.frames import Message

Push = DensePush | RowsPush


def close_round(pushes: Sequence[Sequence[Push]], round: int, meters: Meters) -> None:
    """Apply one round: `pushes` of each trainer that took part, in trainer order.

    Per table, gradients are summed in that order and scaled by 1 / (number of trainers that took
    part), whether or not all of them touched the table or the row. So the result is that of one
    process with the big batch, and depends on neither the arrival order nor the partition.
    """
    meters.pushes.add(len(pushes))
    with meters.apply.time():
        for of_table in _by_table(pushes):
            _apply_mean(of_table, len(pushes), round, meters)
    meters.rounds.add()


def apply_now(pushes: Sequence[Push], step: int, meters: Meters) -> None:
    """Apply the gradients of one asynchronous push; `step` counts mini-batches of all trainers."""
    meters.pushes.add()
    with meters.apply.time():
        for push in pushes:
            _count(push, meters)
            rate = rate_at(push.table.spec.learning_rate, step)
            if isinstance(push, DensePush):
                push.table.apply(push.gradient, rate)
            else:
                push.table.apply(push.rows, push.gradients, rate)


def read(pulls: Sequence[DensePull | RowsPull], reply: pb.Header, meters: Meters) -> Message:
    """The reply to some pulls: a part with the version read, and a tensor, for each."""
    tensors: list[Array] = []
    for pull in pulls:
        if isinstance(pull, DensePull):
            kind = PULL_DENSE
            values, version = pull.table.read()
            meters.blocks_read.add()
        else:
            kind = PULL_ROWS
            values = np.empty((len(pull.rows.ids), pull.table.spec.width), np.float32)
            version = pull.table.read(pull.rows, values)
            meters.rows_read.add(len(values))
        reply.parts.add(kind=kind, table=pull.table.spec.name, version=version)
        tensors.append(values)
    return Message(reply, tensors)


def _by_table(pushes: Sequence[Sequence[Push]]) -> list[list[Push]]:
    """The pushes of each table, in trainer order."""
    groups: dict[str, list[Push]] = {}
    for of_trainer in pushes:
        for push in of_trainer:
            groups.setdefault(push.table.spec.name, []).append(push)
    return list(groups.values())


def _apply_mean(pushes: list[Push], trainers: int, round: int, meters: Meters) -> None:
    for push in pushes:
        _count(push, meters)
    rate = rate_at(pushes[0].table.spec.learning_rate, round)
    dense = [push for push in pushes if isinstance(push, DensePush)]
    rows = [push for push in pushes if isinstance(push, RowsPush)]
    if dense:
        dense[0].table.apply_mean([push.gradient for push in dense], trainers, rate)
    if rows:
        _apply_mean_rows(rows, trainers, rate)


def _apply_mean_rows(pushes: list[RowsPush], trainers: int, rate: float) -> None:
    table = pushes[0].table
    if trainers == 1 and len(pushes) == 1:
        table.apply(pushes[0].rows, pushes[0].gradients, rate)
        return
    ids, inverse = row_kernels.unique(np.concatenate([push.rows.ids for push in pushes]))
    total: F32 = np.zeros((len(ids), table.spec.width), np.float32)
    start = 0
    for push in pushes:
        end = start + len(push.rows.ids)
        row_kernels.scatter_add_(total, inverse[start:end], push.gradients)
        start = end
    scale_(total.reshape(-1), 1.0 / trainers)
    table.apply(table.route(ids), total, rate)


def _count(push: Push, meters: Meters) -> None:
    meters.staleness(max(0, push.table.version - push.version))
    if isinstance(push, DensePush):
        meters.blocks_applied.add()
    else:
        meters.rows_applied.add(len(push.rows.ids))
