"""Requests, parsed and checked against the tables before anything is admitted or changed.

All errors of a push are found here, so that an admitted push can fail only for lack of memory: the
table exists, the tensors are present, dtypes and shapes fit, this pserver holds or has cached the
ids. Numbers that travelled in less than 32 bits are converted to float32. A reply too large for the
carrier is refused here, before a row is read for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np

from psrt.core.errors import ErrorCode, TableError, WireError
from psrt.core.precision import NUMBER_BYTES
from psrt.core.specs import is_float32
from psrt.core.types import F32, Array
from psrt.pserver.serving.id_list_cache import IdListCache
from psrt.pserver.serving.part_tensors import ONE_RELEASE, numbers_of, tensor_of
from psrt.pserver.tables import DenseTable, RoutedIds, RowsTable, TableRegistry
from psrt.rpc import pb
from psrt.rpc.wire import (
    PRECISION_CODES,
    PULL_CHANGED,
    PULL_DENSE,
    PULL_ROWS,
    PUSH_DENSE,
    PUSH_ROWS,
    Empty,
    Message,
    empty,
)

_PRECISIONS = {0: "float32", **{code: name for name, code in PRECISION_CODES.items()}}


class DensePush(NamedTuple):
    """`rate` is that of this update, None = that of the schedule; with `sums` a round adds."""

    table: DenseTable
    gradient: F32
    version: int
    rate: float | None = None
    sums: bool = False


class RowsPush(NamedTuple):
    """`gradients` (n, width), and if sent `counts` (n, 2), shows and clicks of the ids."""

    table: RowsTable
    rows: RoutedIds
    gradients: F32
    version: int
    counts: F32 | None = None
    rate: float | None = None
    sums: bool = False


class DensePull(NamedTuple):
    table: DenseTable
    precision: str = "float32"


class RowsPull(NamedTuple):
    """`number` is the name of the id list in a later push of gradients, 0 = none."""

    table: RowsTable
    rows: RoutedIds
    precision: str = "float32"
    number: int = 0


class ChangedPull(NamedTuple):
    table: RowsTable
    position: int


Push: TypeAlias = DensePush | RowsPush
Pull: TypeAlias = DensePull | RowsPull | ChangedPull


@dataclass
class RequestParts:
    """The pushes and pulls of one call; `empty` allocates the arrays of the reply."""

    pushes: list[Push] = field(default_factory=list)
    pulls: list[Pull] = field(default_factory=list)
    empty: Empty = empty

    @property
    def acknowledges(self) -> bool:
        """Return True if reading drops entries of a change log that the caller has."""
        return any(isinstance(pull, ChangedPull) for pull in self.pulls)


def parse(tables: TableRegistry, lists: IdListCache, message: Message) -> RequestParts:
    """The parts of a PULL, PUSH or EXCHANGE; raises `WireError` or `TableError` on a misfit.

    `lists` has the ids of pushes that name a list.
    """
    parts = RequestParts(empty=message.empty)
    tensors = iter(message.tensors)
    for part in message.header.parts:
        if part.kind in (PUSH_DENSE, PUSH_ROWS):
            parts.pushes.append(_push(tables, lists, part, message.header.trainer, tensors))
        else:
            parts.pulls.append(_pull(tables, part, tensors))
    if next(tensors, None) is not None:
        raise WireError(
            f"the call has more tensors than its {len(message.header.parts)} parts use; it was "
            "refused.",
            hint=ONE_RELEASE,
        )
    if parts.pulls:
        _check_reply(parts.pulls, message.reply_limit)
    return parts


def bucket_of(parts: RequestParts) -> int:
    """The bucket of all tables of a call; raises `WireError` if they belong to several."""
    both = (*parts.pushes, *parts.pulls)
    buckets = {
        each.table.spec.section if isinstance(each, DensePush | DensePull) else 0 for each in both
    }
    if len(buckets) > 1:
        raise WireError(
            f"an EXCHANGE has tables of buckets {sorted(buckets)}; it was refused.",
            hint="Each bucket has its own rounds and needs its own call; sparse tables belong to "
            "bucket 0.",
        )
    return buckets.pop() if buckets else 0


def _push(
    tables: TableRegistry, lists: IdListCache, part: pb.Part, trainer: int, tensors: Iterator[Array]
) -> Push:
    if part.kind == PUSH_DENSE:
        return _dense_push(tables, part, tensors)
    table = tables.sparse(part.table)
    return _rows_push(table, _pushed_ids(table, lists, part, trainer, tensors), part, tensors)


def _pull(tables: TableRegistry, part: pb.Part, tensors: Iterator[Array]) -> Pull:
    if part.kind == PULL_DENSE:
        return DensePull(tables.dense(part.table), _precision(part))
    if part.kind == PULL_ROWS:
        return _rows_pull(tables, part, tensors)
    if part.kind == PULL_CHANGED:
        return _changed_pull(tables, part)
    raise WireError(
        f"a part for table {part.table!r} has unknown kind {part.kind}; the call was refused.",
        hint=ONE_RELEASE,
    )


def _dense_push(tables: TableRegistry, part: pb.Part, tensors: Iterator[Array]) -> DensePush:
    table = tables.dense(part.table)
    gradient = numbers_of(part, tensors, "gradient", (table.spec.size,))
    return DensePush(table, gradient, part.version, _rate(part), part.sums)


def _rows_push(
    table: RowsTable, rows: RoutedIds, part: pb.Part, tensors: Iterator[Array]
) -> RowsPush:
    count = len(rows.ids)
    gradients = numbers_of(part, tensors, "gradients", (count, table.spec.width))
    counts = tensor_of(part, tensors, "counts", np.float32, (count, 2)) if part.counts else None
    return RowsPush(table, rows, gradients, part.version, counts, _rate(part), part.sums)


def _pushed_ids(
    table: RowsTable, lists: IdListCache, part: pb.Part, trainer: int, tensors: Iterator[Array]
) -> RoutedIds:
    if not part.keys:
        return table.route(tensor_of(part, tensors, "ids", np.int64, (None,)))
    rows = lists.get(trainer, part.table, part.keys)
    if rows is None:
        raise TableError(
            f"a push of trainer {trainer} for table {part.table!r} names a list of ids that is "
            "not cached; nothing of it was applied.",
            code=ErrorCode.ID_LIST_UNKNOWN,
            hint="Send the same push with its ids, under the same push key.",
        )
    return rows


def _rows_pull(tables: TableRegistry, part: pb.Part, tensors: Iterator[Array]) -> RowsPull:
    table = tables.sparse(part.table)
    rows = table.route(tensor_of(part, tensors, "ids", np.int64, (None,)))
    return RowsPull(table, rows, _precision(part), part.keys)


def _changed_pull(tables: TableRegistry, part: pb.Part) -> ChangedPull:
    table = tables.sparse(part.table)
    if (log := table.change_log) is None:
        raise WireError(
            f"PULL_CHANGED needs mode Geo; table {part.table!r} does not log changes. "
            "The call was refused.",
            code=ErrorCode.JOB_MISMATCH,
            hint="In the other modes trainers pull the rows they need by id.",
        )
    if part.position > log.end and not log.has_predecessors:
        raise WireError(
            f"the call asks what changed in table {part.table!r} from position {part.position} on, "
            f"but its log ends at {log.end}; it was refused.",
            code=ErrorCode.JOB_MISMATCH,
            hint="Ask from the position that this pserver's last reply named, or from 0.",
        )
    return ChangedPull(table, part.position)


def _rate(part: pb.Part) -> float | None:
    """The learning rate that comes with a push; raises `WireError` if it is not legal."""
    if not part.HasField("rate"):
        return None
    if not is_float32(part.rate) or part.rate < 0:
        raise WireError(
            f"a push for table {part.table!r} has learning rate {part.rate}; nothing was applied.",
            hint="A rate is a finite number of float32, at least 0.",
        )
    return float(part.rate)


def _precision(part: pb.Part) -> str:
    """The precision of the reply."""
    precision = _PRECISIONS.get(part.wire)
    if precision is None:
        raise WireError(
            f"a pull of table {part.table!r} asks for dtype {part.wire}, which replies do not "
            "have; it was refused.",
            hint="Part.wire is FLOAT32, FLOAT16, BFLOAT16 or INT8.",
        )
    return precision


def _check_reply(pulls: list[Pull], limit: int) -> None:
    """Raise `WireError` if the numbers of the reply have more than `limit` bytes.

    Changed rows count only for position 0, which asks for all rows; else only the log has them.
    """
    size_bytes = 0
    for pull in pulls:
        if isinstance(pull, DensePull):
            size_bytes += pull.table.spec.size * NUMBER_BYTES[pull.precision]
        elif isinstance(pull, RowsPull):
            size_bytes += len(pull.rows.ids) * pull.table.spec.width * NUMBER_BYTES[pull.precision]
        elif not pull.position:
            size_bytes += pull.table.rows * (8 + 4 * pull.table.spec.width)
    if size_bytes > limit:
        raise WireError(
            f"the reply would have {size_bytes} bytes of numbers; the limit is {limit}. "
            "The call was refused.",
            code=ErrorCode.WIRE_TOO_LARGE,
            hint="Pull fewer rows at a time, or raise max_message_mib of the pserver.",
        )
