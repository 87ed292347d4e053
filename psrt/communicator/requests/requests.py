"""One request to one pserver: its parts, their tensors, and the destinations of its reply.

One thread at a time uses a request. A whole reply is checked before any of it is written, except
for tensors that the carrier received in place. Tensors travel in the precision of their table and
are float32 on either side: `psrt.kernels.precision.narrow`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from psrt.communicator.requests.known_ids import IdList
from psrt.core.errors import WireError
from psrt.core.specs import SparseTableSpec
from psrt.core.types import F32, I32, I64, Array, Shape
from psrt.kernels.precision import Narrow, precision_of, scales_of, widen, widened
from psrt.kernels.tables import rows as row_kernels
from psrt.rpc import pb
from psrt.rpc.wire import (
    PRECISION_CODES,
    PULL_CHANGED,
    PULL_DENSE,
    PULL_ROWS,
    PUSH_DENSE,
    PUSH_ROWS,
    Message,
)

_LEAST_KEPT_BYTES = 64 * 1024
_WIRE = {**PRECISION_CODES, "float32": 0}  # a zero field takes no bytes in a frame


class Sink(NamedTuple):
    """Destination of one pull.

    `out` is a block (size,) or all rows (n, width) of a table. `positions` lists the rows of `out`
    that this pserver sends, None for all in order. `known` is the list of ids that pserver
    `endpoint` was asked to remember. A large float32 reply with all rows is not copied: it replaces
    `out` in `rows`, read-only.
    """

    table: str
    out: F32
    positions: I32 | None = None
    known: IdList | None = None
    endpoint: int = 0
    rows: dict[str, F32] | None = None

    @property
    def shape(self) -> Shape:
        return (
            self.out.shape if self.positions is None else (len(self.positions), *self.out.shape[1:])
        )

    def into(self, precision: str) -> list[Array | None]:
        """The array that may receive each tensor of the reply; None if `write` must copy it."""
        if precision == "float32" and self.positions is None:
            return [self.out]
        return [None, None] if precision == "int8" else [None]

    def write(self, numbers: list[Array]) -> None:
        if numbers[0] is self.out:
            return  # received in place
        if self.positions is not None:
            row_kernels.scatter(self.out, self.positions, widened(numbers))
        elif self.rows is not None and _is_worth_keeping(numbers[0]):
            self.rows[self.table] = numbers[0]
        else:
            widen(numbers, self.out)


@dataclass(frozen=True)
class Changed:
    """Rows of one table that others have changed: ids (n,) and rows (n, width), views of the reply.

    The next request to this pserver starts at `position`.
    """

    ids: I64
    rows: F32
    position: int


class RowsGradient(NamedTuple):
    """Rows for one pserver: ids (n,), their gradients, and counts (n, 2) if its table needs them.

    `number` names a list of exactly these ids that the pserver remembers, 0 = none.
    """

    ids: I64
    values: Narrow
    counts: F32 | None = None
    number: int = 0


@dataclass(eq=False)
class Request:
    """The parts sent to one bucket of one pserver, and the destinations of the reply.

    The carrier may receive large tensors straight into arrays of `into`: nobody reads these before
    the call has succeeded. After it, `changed` holds the rows of `pull_changed` by table, and
    `global_step` of a PUSH the mini-batches of all trainers that the pserver has counted.
    With `sums` a round updates by the sum of gradients, in place of their mean. `endpoint` is the
    number of the pserver, `bucket` that of its bucket. Rows, and parts sent once to each pserver,
    belong to bucket 0.
    """

    endpoint: int = 0
    bucket: int = 0
    header: pb.Header = field(default_factory=pb.Header)
    tensors: list[Array] = field(default_factory=list)
    into: list[Array | None] = field(default_factory=list)
    changed: dict[str, Changed] = field(default_factory=dict)
    global_step: int = 0
    sums: bool = False
    _sinks: list[Sink] = field(default_factory=list)
    _widths: dict[str, int] = field(default_factory=dict)
    _pushed_tensors: int = 0
    _unsent: list[tuple[pb.Part, int, I64]] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not self.header.parts

    @property
    def purpose(self) -> str:
        """Name of the call in a timeline."""
        kinds = {part.kind for part in self.header.parts}
        if kinds <= {PUSH_DENSE, PUSH_ROWS}:
            return "push"
        if kinds & {PUSH_DENSE, PUSH_ROWS}:
            return "exchange"
        return "pull dense" if PULL_DENSE in kinds else "pull rows"

    @property
    def tensor_bytes(self) -> int:
        return sum([tensor.nbytes for tensor in self.tensors])

    @property
    def unsaid_bytes(self) -> int:
        """Bytes of ids that were not sent, because the pserver remembers them."""
        return sum([ids.nbytes for _, _, ids in self._unsent])

    def push_block(
        self, table: str, version: int, gradient: Narrow, rate: float | None = None
    ) -> None:
        """Add a gradient; `rate` replaces the learning rate of the table's schedule."""
        self._push(PUSH_DENSE, table, version, gradient, rate)
        self.tensors += gradient.tensors
        self._pushed_tensors = len(self.tensors)

    def push_rows(
        self, table: str, version: int, rows: RowsGradient, rate: float | None = None
    ) -> None:
        part = self._push(PUSH_ROWS, table, version, rows.values, rate)
        if rows.number:
            part.keys = rows.number
            self._unsent.append((part, len(self.tensors), rows.ids))
        else:
            self.tensors.append(rows.ids)
        self.tensors += rows.values.tensors
        if rows.counts is not None:
            part.counts = True
            self.tensors.append(rows.counts)
        self._pushed_tensors = len(self.tensors)

    def send_all_ids(self) -> bool:
        """Add the ids that the pserver should have remembered; False if there are none."""
        unsent, self._unsent = self._unsent, []
        for part, index, ids in reversed(unsent):
            part.ClearField("keys")
            self.tensors.insert(index, ids)
        return bool(unsent)

    def pull_block(self, table: str, out: F32, precision: str = "float32") -> None:
        """Add the pull of a block; the reply is written to `out` (size,)."""
        self._pull(PULL_DENSE, Sink(table, out), precision)

    def pull_rows(self, sink: Sink, ids: I64, precision: str = "float32") -> None:
        part = self._pull(PULL_ROWS, sink, precision)
        if sink.known is not None:
            part.keys = sink.known.number
        self.tensors.append(ids)

    def pull_changed(self, table: SparseTableSpec, position: int) -> None:
        """Add the pull of rows that others have changed since `position`, after all other pulls."""
        self.header.parts.add(kind=PULL_CHANGED, table=table.name, position=position)
        self._widths[table.name] = table.width

    def receive(self, reply: Message) -> dict[str, int]:
        """Write the tensors of a reply to their destinations; returns the version read, by table.

        Raises `WireError` if the reply does not match the request.
        """
        self.global_step = reply.header.step
        parts = list(reply.header.parts)
        pulled = [part for part in parts if part.kind != PULL_CHANGED]
        if [part.table for part in pulled] != [sink.table for sink in self._sinks]:
            raise WireError(
                f"a reply holds {[part.table for part in pulled]} "
                f"where {[sink.table for sink in self._sinks]} were asked for"
            )
        tensors = iter(reply.tensors)
        arrived = [_numbers(tensors, sink.shape, sink.table) for sink in self._sinks]
        self._receive_changed(parts[len(pulled) :], list(tensors))
        for part, sink, numbers in zip(pulled, self._sinks, arrived, strict=True):
            sink.write(numbers)
            if sink.known is not None and part.keys == sink.known.number:
                sink.known.held_by.add(sink.endpoint)
        return {part.table: part.version for part in parts}

    def pushed(self) -> tuple[pb.Header, list[Array]]:
        """Header and tensors of the pushes alone, with all ids: what a repetition sends.

        Pulls are left out, but a request of pulls alone keeps those of dense blocks: they name its
        bucket.
        """
        kept = [p for p in self.header.parts if p.kind in (PUSH_DENSE, PUSH_ROWS)]
        kept = kept or [p for p in self.header.parts if p.kind == PULL_DENSE][:1]
        header = pb.Header()
        header.CopyFrom(self.header)
        header.ClearField("parts")
        header.parts.extend(kept)
        for part in header.parts:
            part.ClearField("keys")
        tensors = self.tensors[: self._pushed_tensors]
        for _, index, ids in reversed(self._unsent):
            tensors.insert(index, ids)
        return header, tensors

    def _push(
        self, kind: int, table: str, version: int, gradient: Narrow, rate: float | None
    ) -> pb.Part:
        factor = 0.0 if gradient.factor == 1.0 else gradient.factor
        return self.header.parts.add(
            kind=kind, table=table, version=version, factor=factor, rate=rate, sums=self.sums
        )

    def _pull(self, kind: int, sink: Sink, precision: str) -> pb.Part:
        self._sinks.append(sink)
        self.into += sink.into(precision)
        return self.header.parts.add(kind=kind, table=sink.table, wire=_WIRE[precision])

    def _receive_changed(self, parts: Sequence[pb.Part], tensors: Sequence[Array]) -> None:
        """Store the last parts of a reply, in the order of the request, with two tensors each."""
        if [part.table for part in parts] != list(self._widths) or len(tensors) != 2 * len(parts):
            raise WireError(
                f"a reply holds changes of {[part.table for part in parts]} in {len(tensors)} "
                f"tensors where {list(self._widths)} were asked for"
            )
        for part, ids, rows in zip(parts, tensors[::2], tensors[1::2], strict=True):
            fits = ids.ndim == 1 and rows.shape == (len(ids), self._widths[part.table])
            if not fits or ids.dtype != np.int64 or rows.dtype != np.float32:
                raise WireError(
                    f"a reply holds changes of {part.table} as ids of {ids.dtype} {ids.shape} "
                    f"and rows of {rows.dtype} {rows.shape}"
                )
            self.changed[part.table] = Changed(ids, rows, part.position)


def count_steps(requests: Sequence[Request], steps: int) -> None:
    """Count `steps` mini-batches in a push, once at every pserver."""
    for request in requests:
        request.header.step = steps if request.bucket == 0 else 0


def _is_worth_keeping(rows: Array) -> bool:
    """True if copying these rows costs more than keeping the carrier's memory meanwhile."""
    return rows.dtype == np.float32 and rows.nbytes >= _LEAST_KEPT_BYTES


def _numbers(tensors: Iterator[Array], shape: Shape, table: str) -> list[Array]:
    """The next one or two tensors, which encode numbers of `shape`."""
    values = next(tensors, None)
    if values is None or precision_of(values.dtype) is None or values.shape != shape:
        got = "no tensor" if values is None else f"a tensor of {values.dtype} {values.shape}"
        raise WireError(f"a reply holds {got} for {table} where shape {shape} was asked for")
    if values.dtype != np.int8:
        return [values]
    scales = next(tensors, None)
    if scales is None or scales.dtype != np.float32 or scales.shape != (scales_of(shape),):
        raise WireError(f"a reply holds int8 for {table} without its scales")
    return [values, scales]
