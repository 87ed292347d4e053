"""Calls of one trainer to one pserver in one step, by mode, and their bytes.

The calls are those of `psrt.communicator`, the bytes those of docs/reference/wire-format.md in a
socket; TCP, IP and Ethernet add theirs (`LINK_EFFICIENCY`). Numbers are means over many steps.
Where timing decides how much a mode sends, this is the most. Async pulls all dense parameters once
for `min_send_grad_num_before_recv` steps, with the answer of a push; calls of their own for large
ones are not counted. A trainer of Ssp waits at the first pserver once a step. Async is taken to
merge `max_merge_var_num` gradients, as it does when steps come faster than pushes go.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from psrt.core.precision import NUMBER_BYTES
from psrt.core.specs import (
    Async,
    Collective,
    CommunicationMode,
    Geo,
    HalfAsync,
    SparseTableSpec,
    Ssp,
    Sync,
)
from psrt.partition.buckets import MAX_INFLIGHT

ID_BYTES, FLOAT_BYTES = 8, 4
_INT8_ELEMENTS_A_SCALE = 256
"""In a dense block; a row has a scale of its own."""

LINK_EFFICIENCY = 1448 / 1538
"""Bytes of a TCP stream ÷ bytes on an Ethernet of MTU 1500: of 1,538 with preamble, frame and gap,
20 are of IP and 32 of TCP with time stamps."""

_CALL_BYTES = 64 + 32  # preamble, ids of call and trainer, push key, and half of what pads to 64
_PART_BYTES, _TENSOR_BYTES = 32, 18


@dataclass(frozen=True)
class TableUse:
    """Use of one sparse table: its `rows`, and `ids` and `distinct` ids per step of one trainer.

    Rows of distinct ids travel. Their number grows like stepsᵝ with β = `growth` (Heaps 1978,
    section 7.5, of words in a text). `wire` is the precision of gradients and weights in calls.
    """

    spec: SparseTableSpec
    rows: int
    ids: float
    distinct: float
    growth: float = 1.0
    wire: str = "float32"

    @property
    def values_bytes(self) -> float:
        """Bytes of one row in a call, without its id."""
        scale = FLOAT_BYTES if self.wire == "int8" else 0
        return self.spec.width * NUMBER_BYTES[self.wire] + scale

    def distinct_after(self, steps: float) -> float:
        """Distinct ids of that many steps, of one or of several trainers together."""
        return min(float(self.rows), self.distinct * math.pow(steps, self.growth))


@dataclass(frozen=True)
class PserverContents:
    """Dense blocks of one pserver, their bytes in calls, and its fraction of each table, 0 to 1.

    Each of the `buckets` of blocks has calls of its own.
    """

    dense_bytes: float
    blocks: float
    table_fraction: float
    buckets: int = 1

    @property
    def of_one_bucket(self) -> PserverContents:
        """The contents of bucket 0, which has all rows."""
        count = self.buckets
        return PserverContents(self.dense_bytes / count, self.blocks / count, self.table_fraction)


@dataclass(frozen=True)
class Body:
    """A request or a reply: its parts, its tensors and their bytes.

    They include `row_bytes` of `rows` gradients or weights, which are copied for this message;
    dense tensors are sent without a copy.
    """

    parts: float = 0
    tensors: float = 0
    payload_bytes: float = 0.0
    rows: float = 0.0
    row_bytes: float = 0.0

    def __add__(self, other: Body) -> Body:
        return Body(
            self.parts + other.parts,
            self.tensors + other.tensors,
            self.payload_bytes + other.payload_bytes,
            self.rows + other.rows,
            self.row_bytes + other.row_bytes,
        )

    @property
    def size_bytes(self) -> float:
        described = self.parts * _PART_BYTES + self.tensors * _TENSOR_BYTES
        return _CALL_BYTES + described + self.payload_bytes


@dataclass(frozen=True)
class CallKind:
    """One kind of call: `per_step` of them in a step, over `connections` of its own."""

    name: str
    per_step: float
    request: Body
    reply: Body
    to_all: bool = True
    """False if only the first pserver of the plan gets it."""
    connections: int = 1

    @property
    def up_bytes(self) -> float:
        """Bytes per step from the trainer."""
        return self.per_step * self.request.size_bytes

    @property
    def down_bytes(self) -> float:
        """Bytes per step to the trainer."""
        return self.per_step * self.reply.size_bytes


def dense_wire_bytes(elements: int, wire: str) -> float:
    """Bytes of a dense block in a call."""
    scales = elements / _INT8_ELEMENTS_A_SCALE if wire == "int8" else 0
    return elements * NUMBER_BYTES[wire] + scales * FLOAT_BYTES


def calls_of_step(
    mode: CommunicationMode, uses: Sequence[TableUse], contents: PserverContents, trainers: int
) -> tuple[CallKind, ...]:
    """The calls of one trainer to the pserver with these contents."""
    bucket = contents.of_one_bucket
    first = _calls(mode, uses, bucket, trainers)
    if contents.buckets == 1:
        return first
    further = [
        replace(
            call,
            name=f"{call.name}, further buckets",
            per_step=call.per_step * (contents.buckets - 1),
            connections=min(contents.buckets, MAX_INFLIGHT) - 1,
        )
        for call in _calls(mode, (), bucket, trainers)
        if call.request.parts
    ]
    return (*first, *further)


def _calls(
    mode: CommunicationMode, uses: Sequence[TableUse], contents: PserverContents, trainers: int
) -> tuple[CallKind, ...]:
    """The calls of one bucket."""
    bodies = _Bodies(uses, contents)
    match mode:
        case Sync():
            return (
                CallKind(
                    "exchange", 1, bodies.push() + bodies.pull(), bodies.dense() + bodies.rows()
                ),
            )
        case HalfAsync():
            return (
                CallKind("push", 1, bodies.push() + bodies.pull(), bodies.dense() + bodies.rows()),
            )
        case Async():
            return _async_calls(mode, bodies)
        case Ssp():
            return (
                CallKind("push", 1, bodies.push(), Body()),
                CallKind("pull", 1, bodies.pull(), bodies.dense() + bodies.rows()),
                CallKind("meet", 2, Body(), Body(), to_all=False),
            )
        case Geo():
            return (_geo_call(mode, bodies, trainers),)
        case Collective():
            return ()  # there are no pservers


def _async_calls(mode: Async, bodies: _Bodies) -> tuple[CallKind, ...]:
    """Dense parameters come with the answers of pushes, so not more often than these."""
    merged = mode.max_merge_var_num
    enough = mode.min_send_grad_num_before_recv if mode.independent_recv_thread else 1
    pulled_after = merged * -(-enough // merged)
    push, rows = bodies.push(merged), CallKind("pull rows", 1, bodies.pull_rows(), bodies.rows())
    exchange = CallKind("exchange", 1 / pulled_after, push + bodies.pull_dense(), bodies.dense())
    if pulled_after == merged:
        return exchange, rows
    return CallKind("push", 1 / merged - 1 / pulled_after, push, Body()), exchange, rows


def _geo_call(mode: Geo, bodies: _Bodies, trainers: int) -> CallKind:
    steps = mode.update_frequency
    others = (trainers - 1) * steps
    request = bodies.dense() + bodies.pairs(steps) + bodies.pull_dense() + bodies.pull_changed()
    return CallKind(
        "exchange of changes", 1 / steps, request, bodies.dense() + bodies.pairs(others)
    )


class _Bodies:
    """The bodies of requests and replies."""

    def __init__(self, uses: Sequence[TableUse], contents: PserverContents) -> None:
        self._uses, self._contents, self._tables = uses, contents, len(uses)

    def push(self, steps: int = 1) -> Body:
        """Merged gradients of that many steps, of dense blocks and of rows.

        The ids of one step were sent with the pull of its rows and are not sent again; those of
        several are.
        """
        return self.dense() + (self.rows() if steps == 1 else self.pairs(steps))

    def pull(self) -> Body:
        return self.pull_dense() + self.pull_rows()

    def pull_dense(self) -> Body:
        return Body(self._contents.blocks)

    def pull_rows(self) -> Body:
        ids = sum(self._distinct(use) for use in self._uses)
        return Body(self._tables, self._tables, ids * ID_BYTES)

    def pull_changed(self) -> Body:
        return Body(self._tables)

    def dense(self) -> Body:
        return Body(self._contents.blocks, self._contents.blocks, self._contents.dense_bytes)

    def rows(self) -> Body:
        rows = sum(self._distinct(use) for use in self._uses)
        size = sum(self._distinct(use) * use.values_bytes for use in self._uses)
        return Body(self._tables, self._tables, size, rows, size)

    def pairs(self, steps: int) -> Body:
        """Distinct ids of so many steps, with their gradients or weights."""
        rows = sum(self._distinct(use, steps) for use in self._uses)
        size = sum(self._distinct(use, steps) * (ID_BYTES + use.values_bytes) for use in self._uses)
        return Body(self._tables, 2 * self._tables, size, rows, size)

    def _distinct(self, use: TableUse, steps: int = 1) -> float:
        return use.distinct_after(steps) * self._contents.table_fraction


__all__ = ["FLOAT_BYTES", "ID_BYTES", "LINK_EFFICIENCY", "Body", "CallKind", "PserverContents"]
__all__ += ["TableUse", "calls_of_step", "dense_wire_bytes"]
