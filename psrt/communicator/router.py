"""Gradients → parts per pserver, and replies → whole parameters.

Pure except for writing reply tensors into the arrays they were asked for; each `Request` is used by
one thread at a time. Dense blocks are views of the gradient, nothing is copied. A sparse table
costs one partition pass over its ids and one gather of its gradient rows; with a single pserver
both are sent as they are. All tables of a step travel in one request per pserver.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from psrt.communicator.base import Gradients, Versions
from psrt.core.errors import ErrorCode, TableError, WireError
from psrt.core.specs import DenseTableSpec, SparseTableSpec, moves_all_rows
from psrt.core.tensors import SelectedRows
from psrt.core.types import F32, I32, I64, Array
from psrt.kernels import rows as row_kernels
from psrt.partition.plan import PartitionPlan
from psrt.rpc import pb
from psrt.rpc.frames import Message

PUSH_DENSE, PUSH_ROWS, PULL_DENSE, PULL_ROWS, PULL_CHANGED = 1, 2, 3, 4, 5
"""Numbers of `pb.Part.kind`; protos/psrt/v1/frame.proto says what tensors each kind carries."""


@dataclass(frozen=True)
class Sink:
    """Where one tensor of a reply goes.

    `out` is a block (size,) or all rows (n, width) of a table; `positions` says which of these rows
    the tensor holds, None all of them in order.
    """

    table: str
    out: F32
    positions: I32 | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return (
            self.out.shape if self.positions is None else (len(self.positions), *self.out.shape[1:])
        )

    def write(self, values: Array) -> None:
        if self.positions is None:
            np.copyto(self.out, values)
        else:
            row_kernels.scatter(self.out, self.positions, values)


@dataclass(frozen=True)
class Changed:
    """The rows of one table that others have changed: ids (n,), rows (n, width); their pserver
    wants to be asked from `position` next time. Arrays are views of the reply."""

    ids: I64
    rows: F32
    position: int


class Request:
    """What one pserver is sent, and where its answer goes.

    Of the answer, `changed` holds what `pull_changed` asked for, by table; `global_step` is how
    many mini-batches of all trainers a pserver has been told of, in an answer to a PUSH.
    """

    def __init__(self) -> None:
        self.header = pb.Header()
        self.tensors: list[Array] = []
        self.changed: dict[str, Changed] = {}
        self.global_step = 0
        self._sinks: list[Sink] = []
        self._widths: dict[str, int] = {}

    @property
    def is_empty(self) -> bool:
        return not self.header.parts

    @property
    def does(self) -> str:
        """What the request is for, in the words of a timeline."""
        kinds = {part.kind for part in self.header.parts}
        if kinds <= {PUSH_DENSE, PUSH_ROWS}:
            return "push"
        if kinds & {PUSH_DENSE, PUSH_ROWS}:
            return "exchange"
        return "pull dense" if PULL_DENSE in kinds else "pull rows"

    @property
    def tensor_bytes(self) -> int:
        return sum(tensor.nbytes for tensor in self.tensors)

    def push(self, kind: int, table: str, version: int, *tensors: Array) -> None:
        self.header.parts.add(kind=kind, table=table, version=version)
        self.tensors += tensors

    def pull(self, kind: int, sink: Sink, *tensors: Array) -> None:
        self.header.parts.add(kind=kind, table=sink.table)
        self.tensors += tensors
        self._sinks.append(sink)

    def pull_changed(self, table: SparseTableSpec, position: int) -> None:
        """Ask for the rows that others have changed since `position`, after all other pulls."""
        self.header.parts.add(kind=PULL_CHANGED, table=table.name, position=position)
        self._widths[table.name] = table.width

    def receive(self, reply: Message) -> dict[str, int]:
        """Write the tensors of a reply where they were asked for; the version read, by table."""
        self.global_step = reply.header.step
        parts = [part for part in reply.header.parts if part.kind in (PULL_DENSE, PULL_ROWS)]
        if [part.table for part in parts] != [sink.table for sink in self._sinks]:
            raise WireError(
                f"a reply holds {[part.table for part in parts]} "
                f"where {[sink.table for sink in self._sinks]} were asked for"
            )
        count = len(self._sinks)
        tensors, changed = reply.tensors[:count], reply.tensors[count:]
        if [tensor.shape for tensor in tensors] != [sink.shape for sink in self._sinks]:
            raise WireError(
                f"a reply holds tensors of shapes {[tensor.shape for tensor in tensors]} "
                f"where {[sink.shape for sink in self._sinks]} were asked for"
            )
        self._receive_changed(reply.header, changed)
        for sink, values in zip(self._sinks, tensors, strict=True):
            sink.write(values)
        return {part.table: part.version for part in reply.header.parts}

    def _receive_changed(self, header: pb.Header, tensors: Sequence[Array]) -> None:
        """They are the last parts, as they were in the request, with two tensors each."""
        parts = [part for part in header.parts if part.kind == PULL_CHANGED]
        if [part.table for part in parts] != list(self._widths) or len(tensors) != 2 * len(parts):
            raise WireError(
                f"a reply tells of changes in {[part.table for part in parts]} by {len(tensors)} "
                f"tensors where {list(self._widths)} were asked for"
            )
        for part, ids, rows in zip(parts, tensors[::2], tensors[1::2], strict=True):
            fits = ids.ndim == 1 and rows.shape == (len(ids), self._widths[part.table])
            if not fits or ids.dtype != np.int64 or rows.dtype != np.float32:
                raise WireError(
                    f"a reply tells of changes in {part.table} by ids of {ids.dtype} {ids.shape} "
                    f"and rows of {rows.dtype} {rows.shape}"
                )
            self.changed[part.table] = Changed(ids, rows, part.position)


class Router:
    """Knows the plan; `requests()` starts a step, the other methods add to its requests."""

    def __init__(self, plan: PartitionPlan) -> None:
        number = {endpoint: i for i, endpoint in enumerate(plan.endpoints)}
        self._endpoints = len(plan.endpoints)
        self._blocks: dict[str, list[tuple[int, DenseTableSpec]]] = {}
        for block in plan.blocks:
            placed = number[block.endpoint], block.spec
            self._blocks.setdefault(block.spec.parameter, []).append(placed)
        self._tables = {spec.name: spec for spec in plan.sparse}
        self._shard_bounds = np.asarray(plan.shard_bounds, np.int64)

    def requests(self) -> list[Request]:
        """An empty request per endpoint, in the order of the plan."""
        return [Request() for _ in range(self._endpoints)]

    def push(self, requests: list[Request], gradients: Gradients, versions: Versions) -> None:
        """Add the gradients, each with the version of the table it was computed on."""
        for name, gradient in gradients.items():
            if isinstance(gradient, SelectedRows):
                self._push_rows(requests, self._table(name), gradient, versions)
            else:
                self._push_dense(requests, name, gradient, versions)

    def pull_dense(self, requests: list[Request], into: Mapping[str, F32]) -> None:
        """Ask for all blocks of the parameters in `into`; replies are written to these arrays."""
        for name, whole in into.items():
            flat = whole.reshape(-1)
            for endpoint, spec in self._parameter(name):
                block = flat[spec.offset : spec.offset + spec.size]
                requests[endpoint].pull(PULL_DENSE, Sink(spec.name, block))

    def pull_rows(self, requests: list[Request], wanted: Mapping[str, I64]) -> dict[str, F32]:
        """Ask for rows; the arrays returned are filled when all replies were received."""
        return {
            name: self._pull_table(requests, self._table(name), ids) for name, ids in wanted.items()
        }

    def _pull_table(self, requests: list[Request], table: SparseTableSpec, ids: I64) -> F32:
        out = np.empty((len(ids), table.width), np.float32)
        for endpoint, positions in self._by_owner(ids):
            asked = ids if positions is None else ids[positions]
            requests[endpoint].pull(PULL_ROWS, Sink(table.name, out, positions), asked)
        return out

    def _push_dense(
        self, requests: list[Request], name: str, gradient: F32, versions: Versions
    ) -> None:
        blocks = self._parameter(name)
        shape = blocks[0][1].shape
        if gradient.size != math.prod(shape):
            raise _misfit(name, gradient.shape, shape)
        flat = np.ascontiguousarray(gradient, np.float32).reshape(-1)
        for endpoint, spec in blocks:
            block = flat[spec.offset : spec.offset + spec.size]
            version = versions.get((endpoint, spec.name), 0)
            requests[endpoint].push(PUSH_DENSE, spec.name, version, block)

    def _push_rows(
        self,
        requests: list[Request],
        table: SparseTableSpec,
        gradient: SelectedRows,
        versions: Versions,
    ) -> None:
        if gradient.values.shape[1] != table.width:
            raise _misfit(table.name, gradient.values.shape, (len(gradient.ids), table.width))
        merged = row_kernels.merge(gradient)
        to_all = moves_all_rows(table.optimizer)
        for endpoint, positions in self._by_owner(merged.ids, to_all):
            ids, values = merged.ids, merged.values
            if positions is not None:
                ids, values = ids[positions], _gathered(values, positions)
            version = versions.get((endpoint, table.name), 0)
            requests[endpoint].push(PUSH_ROWS, table.name, version, ids, values)

    def _by_owner(self, ids: I64, to_all: bool = False) -> Iterator[tuple[int, I32 | None]]:
        """(endpoint, positions of its ids); None stands for all ids in order, when there is one.

        Endpoints that hold none of the ids are left out, unless `to_all`.
        """
        if not len(ids) and not to_all:
            return
        if self._endpoints == 1:
            yield 0, None
            return
        order, counts = row_kernels.partition_ids(
            ids, self._shard_bounds, int(self._shard_bounds[-1])
        )
        end = 0
        for endpoint, count in enumerate(counts.tolist()):
            start, end = end, end + count
            if count or to_all:
                yield endpoint, order[start:end]

    def _parameter(self, name: str) -> list[tuple[int, DenseTableSpec]]:
        if name not in self._blocks:
            raise _unknown(name, "dense parameter")
        return self._blocks[name]

    def _table(self, name: str) -> SparseTableSpec:
        if name not in self._tables:
            raise _unknown(name, "sparse table")
        return self._tables[name]


def _gathered(values: F32, positions: I32) -> F32:
    out = np.empty((len(positions), values.shape[1]), np.float32)
    row_kernels.gather(values, positions, out)
    return out


def _unknown(name: str, kind: str) -> TableError:
    return TableError(
        f"the partition plan has no {kind} {name}; nothing was sent for it",
        hint="The plan must be built from the program that runs.",
    )


def _misfit(name: str, got: tuple[int, ...], wanted: tuple[int, ...]) -> TableError:
    return TableError(
        f"the gradient of {name} has shape {got} where {wanted} is needed; it was not sent",
        code=ErrorCode.TABLE_SHAPE,
    )
