"""Requests taken apart and checked against the tables, before anything is admitted or changed.

Everything that can be wrong with a push is found here, so that an admitted push can fail only for
want of room: the table exists, the tensors are there, dtypes and shapes fit, this pserver holds the
ids or remembers them. Numbers that travelled in less than 32 bits are float32 from here on. A reply
that the carrier would not send is refused here, too, before a row is read for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np

from psrt.core.errors import ErrorCode, TableError, WireError
from psrt.core.precision import NUMBER_BYTES
from psrt.core.types import F32, Array, Shape
from psrt.kernels.precision import precision_of, scales_of, widened
from psrt.pserver.serving.id_lists import IdLists
from psrt.pserver.tables import DenseTable, Routed, RowsTable, Tables
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
    table: DenseTable
    gradient: F32
    version: int


class RowsPush(NamedTuple):
    """`gradients` (n, width), and `counts` (n, 2), shows and clicks of the ids, if they came."""

    table: RowsTable
    rows: Routed
    gradients: F32
    version: int
    counts: F32 | None = None


class DensePull(NamedTuple):
    table: DenseTable
    precision: str = "float32"


class RowsPull(NamedTuple):
    """`number` is how the caller will name its list of ids when it pushes gradients, 0 = not."""

    table: RowsTable
    rows: Routed
    precision: str = "float32"
    number: int = 0


class ChangedPull(NamedTuple):
    table: RowsTable
    position: int


Push: TypeAlias = DensePush | RowsPush
Pull: TypeAlias = DensePull | RowsPull | ChangedPull


@dataclass
class RequestParts:
    """What one call asks of the tables; pulls are answered in their order, with arrays that `empty`
    makes."""

    pushes: list[Push] = field(default_factory=list)
    pulls: list[Pull] = field(default_factory=list)
    empty: Empty = empty

    @property
    def acknowledges(self) -> bool:
        """Reading makes the pserver forget what the caller has."""
        return any(isinstance(pull, ChangedPull) for pull in self.pulls)


def parse(tables: Tables, lists: IdLists, message: Message) -> RequestParts:
    """The parts of a PULL, PUSH or EXCHANGE; raises for whatever does not fit.

    `lists` has the ids of pushes that name a list instead of bringing it.
    """
    parts = RequestParts(empty=message.empty)
    tensors = iter(message.tensors)
    for part in message.header.parts:
        kind = part.kind
        if kind == PUSH_DENSE:
            parts.pushes.append(_dense_push(tables, part, tensors))
        elif kind == PUSH_ROWS:
            table = tables.sparse(part.table)
            rows = _pushed_ids(table, lists, part, message.header.trainer, tensors)
            parts.pushes.append(_rows_push(table, rows, part, tensors))
        elif kind == PULL_DENSE:
            parts.pulls.append(DensePull(tables.dense(part.table), _precision(part)))
        elif kind == PULL_ROWS:
            parts.pulls.append(_rows_pull(tables, part, tensors))
        elif kind == PULL_CHANGED:
            parts.pulls.append(_changed_pull(tables, part))
        else:
            raise WireError(f"a part for table {part.table!r} has unknown kind {kind}.")
    if next(tensors, None) is not None:
        raise WireError(
            f"the call brings more tensors than its {len(message.header.parts)} parts use."
        )
    if parts.pulls:
        _check_reply(parts.pulls, message.reply_limit)
    return parts


def section_of(parts: RequestParts) -> int:
    """The section of all tables that a call is about; raises if they belong to several."""
    both = (*parts.pushes, *parts.pulls)
    sections = {
        each.table.spec.section if isinstance(each, DensePush | DensePull) else 0 for each in both
    }
    if len(sections) > 1:
        raise WireError(
            f"an EXCHANGE is about tables of sections {sorted(sections)}; it was refused.",
            hint="Each section has rounds of its own, so each needs a call of its own; rows of "
            "sparse tables belong to section 0.",
        )
    return sections.pop() if sections else 0


def _dense_push(tables: Tables, part: pb.Part, tensors: Iterator[Array]) -> DensePush:
    table = tables.dense(part.table)
    gradient = _numbers(part, tensors, "gradient", (table.spec.size,))
    return DensePush(table, gradient, part.version)


def _rows_push(table: RowsTable, rows: Routed, part: pb.Part, tensors: Iterator[Array]) -> RowsPush:
    count = len(rows.ids)
    gradients = _numbers(part, tensors, "gradients", (count, table.spec.width))
    counts = _tensor(part, tensors, "counts", np.float32, (count, 2)) if part.counts else None
    return RowsPush(table, rows, gradients, part.version, counts)


def _pushed_ids(
    table: RowsTable, lists: IdLists, part: pb.Part, trainer: int, tensors: Iterator[Array]
) -> Routed:
    if not part.keys:
        return table.route(_tensor(part, tensors, "ids", np.int64, (None,)))
    rows = lists.recall(trainer, part.table, part.keys)
    if rows is None:
        raise TableError(
            f"a push of trainer {trainer} for table {part.table!r} names a list of ids that is "
            "remembered no more; nothing of it was applied.",
            code=ErrorCode.ID_LIST_UNKNOWN,
            hint="Send the same push with its ids, under the same push key.",
        )
    return rows


def _rows_pull(tables: Tables, part: pb.Part, tensors: Iterator[Array]) -> RowsPull:
    table = tables.sparse(part.table)
    rows = table.route(_tensor(part, tensors, "ids", np.int64, (None,)))
    return RowsPull(table, rows, _precision(part), part.keys)


def _changed_pull(tables: Tables, part: pb.Part) -> ChangedPull:
    table = tables.sparse(part.table)
    if not table.logs_changes:
        raise WireError(
            f"PULL_CHANGED needs mode Geo; table {part.table!r} does not log who changed which "
            "rows. The call was refused.",
            code=ErrorCode.JOB_MISMATCH,
            hint="In the other modes trainers pull the rows they need by id.",
        )
    if part.position > table.logged_to:
        raise WireError(
            f"the call asks what changed in table {part.table!r} from position {part.position} on, "
            f"but its log ends at {table.logged_to}; it was refused.",
            code=ErrorCode.JOB_MISMATCH,
            hint="Ask from the position that this pserver's last reply named, or from 0.",
        )
    return ChangedPull(table, part.position)


def _precision(part: pb.Part) -> str:
    """In which precision the reply is wanted."""
    precision = _PRECISIONS.get(part.wire)
    if precision is None:
        raise WireError(
            f"a pull of table {part.table!r} wants its reply in dtype {part.wire}, which numbers "
            "do not travel in; it was refused.",
            hint="Part.wire is FLOAT32, FLOAT16, BFLOAT16 or INT8.",
        )
    return precision


def _numbers(part: pb.Part, tensors: Iterator[Array], what: str, shape: Shape) -> F32:
    """The next tensor or two as float32 of `shape`."""
    values = next(tensors, None)
    if values is None:
        raise _missing(part, what)
    if values.dtype == np.float32 and values.shape == shape:
        return values
    if precision_of(values.dtype) is None:
        raise _misfit(part, what, f"dtype {values.dtype}", "dtype float32 or a narrower one")
    if values.shape != shape:
        raise _misfit(part, what, f"shape {values.shape}", f"shape {_text(shape)}")
    sent = [values]
    if values.dtype == np.int8:
        wanted = (scales_of(shape),)
        sent.append(_tensor(part, tensors, f"scales of the {what}", np.float32, wanted))
    return widened(sent, part.factor or 1.0)


def _tensor(
    part: pb.Part,
    tensors: Iterator[Array],
    what: str,
    dtype: type[np.generic],
    shape: tuple[int | None, ...],
) -> Array:
    """The next tensor, which must have `dtype` and `shape` (None = any extent)."""
    tensor = next(tensors, None)
    if tensor is None:
        raise _missing(part, what)
    if tensor.dtype != dtype:
        raise _misfit(part, what, f"dtype {tensor.dtype}", f"dtype {np.dtype(dtype)}")
    extents = zip(tensor.shape, shape, strict=False)
    if tensor.ndim != len(shape) or [t for t, n in extents if n not in (None, t)]:
        raise _misfit(part, what, f"shape {tensor.shape}", f"shape {_text(shape)}")
    return tensor


def _check_reply(pulls: list[Pull], limit: int) -> None:
    """Raise if the numbers of the reply are over `limit` bytes. How many rows have changed, only
    their log can tell, but for a caller who knows nothing it is all that exist."""
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


def _missing(part: pb.Part, what: str) -> WireError:
    return WireError(f"the {what} for table {part.table!r} are missing: too few tensors.")


def _text(shape: tuple[int | None, ...]) -> str:
    extents = ", ".join("n" if n is None else str(n) for n in shape)
    return f"({extents},)" if len(shape) == 1 else f"({extents})"


def _misfit(part: pb.Part, what: str, got: str, needed: str) -> TableError:
    return TableError(
        f"the {what} for table {part.table!r} came with {got}, but {needed} is needed; "
        "the call was refused.",
        code=ErrorCode.TABLE_SHAPE,
        hint="Trainer and pserver must use the same program and partition plan.",
    )
