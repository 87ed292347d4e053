"""Requests taken apart and checked against the tables, before anything is admitted or changed.

Everything that can be wrong with a push is found here, so that an admitted push cannot fail: the
table exists, the tensors are there, dtypes and shapes fit, this pserver holds the ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from psrt.core.errors import ErrorCode, TableError, WireError
from psrt.core.types import F32, Array
from psrt.pserver.dense_table import DenseTable
from psrt.pserver.sparse_table import Routed, SparseTable
from psrt.pserver.tables import Tables
from psrt.rpc import pb
from psrt.rpc.frames import Message

PUSH_DENSE, PUSH_ROWS, PULL_DENSE, PULL_ROWS, PULL_CHANGED = 1, 2, 3, 4, 5  # pb.PartKind


@dataclass(frozen=True)
class DensePush:
    table: DenseTable
    gradient: F32
    version: int


@dataclass(frozen=True)
class RowsPush:
    table: SparseTable
    rows: Routed
    gradients: F32
    version: int


@dataclass(frozen=True)
class DensePull:
    table: DenseTable


@dataclass(frozen=True)
class RowsPull:
    table: SparseTable
    rows: Routed


@dataclass(frozen=True)
class ChangedPull:
    table: SparseTable
    position: int


Push: TypeAlias = DensePush | RowsPush
Pull: TypeAlias = DensePull | RowsPull | ChangedPull


@dataclass
class Parts:
    """What one call asks of the tables; pulls are answered in their order."""

    pushes: list[Push] = field(default_factory=list)
    pulls: list[Pull] = field(default_factory=list)

    @property
    def acknowledges(self) -> bool:
        """Reading makes the pserver forget what the caller has."""
        return any(isinstance(pull, ChangedPull) for pull in self.pulls)


def parse(tables: Tables, message: Message) -> Parts:
    """The parts of a PULL, PUSH or EXCHANGE; raises for whatever does not fit."""
    parts = Parts()
    tensors = iter(message.tensors)
    for part in message.header.parts:
        if part.kind == PUSH_DENSE:
            parts.pushes.append(_dense_push(tables, part, tensors))
        elif part.kind == PUSH_ROWS:
            parts.pushes.append(_rows_push(tables, part, tensors))
        elif part.kind == PULL_DENSE:
            parts.pulls.append(DensePull(tables.dense(part.table)))
        elif part.kind == PULL_ROWS:
            parts.pulls.append(_rows_pull(tables, part, tensors))
        elif part.kind == PULL_CHANGED:
            parts.pulls.append(_changed_pull(tables, part))
        else:
            raise WireError(f"a part for table {part.table!r} has unknown kind {part.kind}.")
    if next(tensors, None) is not None:
        raise WireError(
            f"the call brings more tensors than its {len(message.header.parts)} parts use."
        )
    return parts


def _dense_push(tables: Tables, part: pb.Part, tensors: Iterator[Array]) -> DensePush:
    table = tables.dense(part.table)
    gradient = _tensor(part, tensors, "gradient", np.float32, (table.spec.size,))
    return DensePush(table, gradient, part.version)


def _rows_push(tables: Tables, part: pb.Part, tensors: Iterator[Array]) -> RowsPush:
    table = tables.sparse(part.table)
    ids = _tensor(part, tensors, "ids", np.int64, (None,))
    gradients = _tensor(part, tensors, "gradients", np.float32, (len(ids), table.spec.width))
    return RowsPush(table, table.route(ids), gradients, part.version)


def _rows_pull(tables: Tables, part: pb.Part, tensors: Iterator[Array]) -> RowsPull:
    table = tables.sparse(part.table)
    return RowsPull(table, table.route(_tensor(part, tensors, "ids", np.int64, (None,))))


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
        raise WireError(f"the {what} for table {part.table!r} are missing: too few tensors.")
    wanted = tuple(t if n is None else n for t, n in zip(tensor.shape, shape, strict=False))
    if tensor.dtype != dtype:
        raise _misfit(part, what, f"dtype {tensor.dtype}", f"dtype {np.dtype(dtype)}")
    if len(tensor.shape) != len(shape) or tensor.shape != wanted:
        raise _misfit(part, what, f"shape {tensor.shape}", f"shape {_text(shape)}")
    return tensor


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
