"""What one trainer asks of one pserver in one step, by mode, in bytes: arithmetic, nothing is sent.

The calls are those of `psrt.communicator`, the bytes those of docs/reference/wire-format.md, as
they go into
a socket; TCP, IP and Ethernet add theirs (`LINK_EFFICIENCY`). Numbers are means over many steps.
Where a mode leaves it to the moment how much is sent, this is the most: Async pulls all dense
parameters once for `min_send_grad_num_before_recv` steps, with the answer of a push (large ones may
come by a call of their own, which is not counted); a trainer of Ssp asks the first pserver to wait
once a step. The merges of Async are taken to be as many as `max_merge_var_num` allows, which they
are when steps come faster than pushes go.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from psrt.core.precision import NUMBER_BYTES
from psrt.core.specs import Async, CommunicationMode, Geo, HalfAsync, SparseTableSpec, Ssp, Sync
from psrt.partition.buckets import MAX_INFLIGHT

ID_BYTES, FLOAT_BYTES = 8, 4
_INT8_ELEMENTS_A_SCALE = 256
"""Of a dense block; a row has a scale of its own."""

LINK_EFFICIENCY = 1448 / 1538
"""Bytes of a TCP stream ÷ bytes on an Ethernet of MTU 1500: of 1,538 with preamble, frame and gap,
20 are of IP and 32 of TCP with time stamps."""

_CALL_BYTES = 64 + 32  # preamble, ids of call and trainer, push key, and half of what pads to 64
_PART_BYTES, _TENSOR_BYTES = 32, 18


@dataclass(frozen=True)
class TableUse:
    """How trainers use one sparse table: `rows` it will hold, and of one step of one trainer the
    `ids` it looks up and how many of them are `distinct`, the rows that travel.

    Distinct ids grow like stepsᵝ with β = `growth` (Heaps 1978, section 7.5, of words in a text).
    `wire` is the precision in which gradients and weights travel.
    """

    spec: SparseTableSpec
    rows: int
    ids: float
    distinct: float
    growth: float = 1.0
    wire: str = "float32"

    @property
    def values_bytes(self) -> float:
        """Of one row when it travels, without its id."""
        scale = FLOAT_BYTES if self.wire == "int8" else 0
        return self.spec.width * NUMBER_BYTES[self.wire] + scale

    def distinct_after(self, steps: float) -> float:
        """Distinct ids of that many steps, of one trainer or of several together."""
        return min(float(self.rows), self.distinct * math.pow(steps, self.growth))


@dataclass(frozen=True)
class PserverShare:
    """What lies on one pserver: dense blocks, of so many bytes when they travel, and a part of each
    table, 0 to 1. Each of the `sections` that blocks are dealt to has calls of its own."""

    dense_bytes: float
    blocks: float
    of_tables: float
    sections: int = 1

    @property
    def of_a_section(self) -> PserverShare:
        """Of the first one, which has all rows."""
        count = self.sections
        return PserverShare(self.dense_bytes / count, self.blocks / count, self.of_tables)


@dataclass(frozen=True)
class Body:
    """A request or a reply: its parts, its tensors and their bytes.

    Of these, `rows` gradients or weights of rows, `row_bytes` long; dense ones are sent from where
    they lie, rows are put together for this one message.
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
    """One kind of call, `per_step` of them a step, that keeps `connections` of its own busy."""

    name: str
    per_step: float
    request: Body
    reply: Body
    to_all: bool = True
    """False: to the first pserver of the plan only."""
    connections: int = 1

    @property
    def up_bytes(self) -> float:
        """Of a step, from the trainer."""
        return self.per_step * self.request.size_bytes

    @property
    def down_bytes(self) -> float:
        """Of a step, to the trainer."""
        return self.per_step * self.reply.size_bytes


def dense_wire_bytes(elements: int, wire: str) -> float:
    """Of a dense block when it travels."""
    scales = elements / _INT8_ELEMENTS_A_SCALE if wire == "int8" else 0
    return elements * NUMBER_BYTES[wire] + scales * FLOAT_BYTES


def calls_of_step(
    mode: CommunicationMode, uses: Sequence[TableUse], share: PserverShare, trainers: int
) -> tuple[CallKind, ...]:
    """The calls of one trainer to the pserver with that share."""
    section = share.of_a_section
    first = _calls(mode, uses, section, trainers)
    if share.sections == 1:
        return first
    further = [
        replace(
            call,
            name=f"{call.name}, further sections",
            per_step=call.per_step * (share.sections - 1),
            connections=min(share.sections, MAX_INFLIGHT) - 1,
        )
        for call in _calls(mode, (), section, trainers)
        if call.request.parts
    ]
    return (*first, *further)


def _calls(
    mode: CommunicationMode, uses: Sequence[TableUse], share: PserverShare, trainers: int
) -> tuple[CallKind, ...]:
    """The calls about one section."""
    asks = _Asks(uses, share)
    match mode:
        case Sync():
            return (CallKind("exchange", 1, asks.push() + asks.ask(), asks.dense() + asks.rows()),)
        case HalfAsync():
            return (CallKind("push", 1, asks.push() + asks.ask(), asks.dense() + asks.rows()),)
        case Async():
            return _async_calls(mode, asks)
        case Ssp():
            return (
                CallKind("push", 1, asks.push(), Body()),
                CallKind("pull", 1, asks.ask(), asks.dense() + asks.rows()),
                CallKind("meet", 2, Body(), Body(), to_all=False),
            )
        case Geo():
            return (_geo_call(mode, asks, trainers),)


def _async_calls(mode: Async, asks: _Asks) -> tuple[CallKind, ...]:
    """Dense parameters come with the answers of pushes, so not more often than these go out."""
    merged = mode.max_merge_var_num
    enough = mode.min_send_grad_num_before_recv if mode.independent_recv_thread else 1
    pulled_after = merged * -(-enough // merged)
    push, rows = asks.push(merged), CallKind("pull rows", 1, asks.ask_rows(), asks.rows())
    exchange = CallKind("exchange", 1 / pulled_after, push + asks.ask_dense(), asks.dense())
    if pulled_after == merged:
        return exchange, rows
    return CallKind("push", 1 / merged - 1 / pulled_after, push, Body()), exchange, rows


def _geo_call(mode: Geo, asks: _Asks, trainers: int) -> CallKind:
    steps = mode.update_frequency
    others = (trainers - 1) * steps
    request = asks.dense() + asks.pairs(steps) + asks.ask_dense() + asks.ask_changed()
    return CallKind("exchange of changes", 1 / steps, request, asks.dense() + asks.pairs(others))


class _Asks:
    """The parts that requests and replies are made of."""

    def __init__(self, uses: Sequence[TableUse], share: PserverShare) -> None:
        self._uses, self._share, self._tables = uses, share, len(uses)

    def push(self, steps: int = 1) -> Body:
        """Gradients of that many steps, merged: of dense blocks and of rows. The ids of one step
        were sent with the pull of its rows and are not sent again; those of several are."""
        return self.dense() + (self.rows() if steps == 1 else self.pairs(steps))

    def ask(self) -> Body:
        return self.ask_dense() + self.ask_rows()

    def ask_dense(self) -> Body:
        return Body(self._share.blocks)

    def ask_rows(self) -> Body:
        ids = sum(self._distinct(use) for use in self._uses)
        return Body(self._tables, self._tables, ids * ID_BYTES)

    def ask_changed(self) -> Body:
        return Body(self._tables)

    def dense(self) -> Body:
        return Body(self._share.blocks, self._share.blocks, self._share.dense_bytes)

    def rows(self) -> Body:
        rows = sum(self._distinct(use) for use in self._uses)
        size = sum(self._distinct(use) * use.values_bytes for use in self._uses)
        return Body(self._tables, self._tables, size, rows, size)

    def pairs(self, steps: int) -> Body:
        """Ids of so many steps, with their gradients or weights."""
        rows = sum(self._distinct(use, steps) for use in self._uses)
        size = sum(self._distinct(use, steps) * (ID_BYTES + use.values_bytes) for use in self._uses)
        return Body(self._tables, 2 * self._tables, size, rows, size)

    def _distinct(self, use: TableUse, steps: int = 1) -> float:
        return use.distinct_after(steps) * self._share.of_tables
