"""Routing of gradients to parts per pserver, and of replies to arrays.

Dense blocks that travel in float32 are views of the gradient, nothing is copied. A sparse table
costs one partition pass over its ids and one gather of its gradient rows; a single pserver gets
both as they are. All tables of a step travel in one request per pserver, or per bucket of a pserver
with large dense parameters (`psrt.partition.buckets`). The rounding errors of narrow gradients are
added to the next one (`residuals`). Lists of ids that pservers remember are not sent again
(`known_ids`).
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from psrt.communicator.base import Gradients, Versions
from psrt.communicator.requests.copies import Copies
from psrt.communicator.requests.known_ids import KnownIds, Owners
from psrt.communicator.requests.lineage import LeaveOut
from psrt.communicator.requests.requests import Request, RowsGradient, Sink
from psrt.communicator.requests.residuals import Residuals
from psrt.core.errors import ConfigError, ErrorCode, TableError
from psrt.core.precision import WirePrecision
from psrt.core.specs import DenseTableSpec, SparseTableSpec, moves_all_rows
from psrt.core.tensors import SelectedRows
from psrt.core.tracing import traced
from psrt.core.types import F32, I32, I64
from psrt.kernels import jit
from psrt.kernels.precision import narrow
from psrt.kernels.tables import rows as row_kernels
from psrt.partition.plan import PartitionPlan


class _Bucket(NamedTuple):
    """One bucket of one pserver, in the order of requests."""

    number: int
    endpoint: int


class Router:
    """Routes by a plan: `requests()` starts a step, the other methods add to its requests.

    `exact` overrides the precision of `wire` with float32. `rates` are the learning rates of
    updates whose trainer decides them, by parameter; the others are those of their schedules. With
    `sums` a round updates by the sum of gradients. `copies` makes the memory of rows for several
    pservers.
    """

    def __init__(
        self, plan: PartitionPlan, wire: WirePrecision | None = None, copies: Copies | None = None
    ) -> None:
        number = {endpoint: i for i, endpoint in enumerate(plan.endpoints)}
        self._endpoints = len(plan.endpoints)
        self._buckets = _buckets(plan, number)
        index = {bucket: i for i, bucket in enumerate(self._buckets)}
        self._blocks: dict[str, list[tuple[int, DenseTableSpec]]] = {}
        for block in plan.blocks:
            bucket = _Bucket(block.spec.section, number[block.endpoint])
            self._blocks.setdefault(block.spec.parameter, []).append((index[bucket], block.spec))
        self._tables = {spec.name: spec for spec in plan.sparse}
        self._shard_bounds = np.asarray(plan.shard_bounds, np.int64)
        self._wire = wire or WirePrecision()
        self._empty = np.empty if copies is None else copies.empty
        self._residuals = Residuals()
        self.known_ids = KnownIds()
        self.rates: Mapping[str, float] = {}
        self.sums = False
        _check_names(self._wire, [*self._blocks, *self._tables])
        if self._wire.narrows:
            jit.warm_up(["half"])

    @property
    def has_buckets(self) -> bool:
        """True if a pserver has more than one bucket and thus several calls at a time."""
        return len(self._buckets) > self._endpoints

    def requests(self) -> list[Request]:
        """Empty requests: bucket 0 of each endpoint in the order of the plan, then bucket 1, …"""
        return [Request(bucket.endpoint, bucket.number, sums=self.sums) for bucket in self._buckets]

    @traced("route")
    def push(
        self,
        requests: list[Request],
        gradients: Gradients,
        versions: Versions,
        exact: bool = False,
        leave_out: LeaveOut | None = None,
    ) -> None:
        """Add the gradients, each with the version of the table it was computed on.

        Requests for which `leave_out` is True get no part of that gradient.
        """
        for name, gradient in gradients.items():
            precision = "float32" if exact else self._wire.of(name)
            to = requests if leave_out is None else _needing(requests, name, leave_out)
            if isinstance(gradient, SelectedRows):
                self._push_rows(to, self._table(name), gradient, versions, precision)
            else:
                self._push_dense(to, name, gradient, versions, precision)

    @property
    def buckets(self) -> list[tuple[int, int]]:
        """Endpoint and bucket of each request of a step."""
        return [(bucket.endpoint, bucket.number) for bucket in self._buckets]

    def pull_dense(
        self, requests: list[Request], into: Mapping[str, F32], exact: bool = False
    ) -> None:
        """Add pulls of all blocks of the parameters in `into`; replies fill these arrays."""
        for name, whole in into.items():
            flat, precision = whole.reshape(-1), "float32" if exact else self._wire.of(name)
            for index, spec in self._parameter(name):
                block = flat[spec.offset : spec.offset + spec.size]
                requests[index].pull_block(spec.name, block, precision)

    def pull_rows(self, requests: list[Request], wanted: Mapping[str, I64]) -> dict[str, F32]:
        """Add pulls of rows; the result holds them once all replies were received.

        Until then it holds arrays (n, width) that the replies fill, or replace with read-only ones.
        """
        rows: dict[str, F32] = {}
        for name, ids in wanted.items():
            rows[name] = self._pull_table(requests, self._table(name), ids, rows)
        return rows

    def _pull_table(
        self, requests: list[Request], table: SparseTableSpec, ids: I64, rows: dict[str, F32]
    ) -> F32:
        out = np.empty((len(ids), table.width), np.float32)
        known = self.known_ids.pulled(table.name, ids, lambda: self._by_owner(ids))
        for endpoint, positions in known.owners:
            asked = ids if positions is None else ids[positions]
            remembered = known if known.number and self.known_ids.trusts(endpoint) else None
            sink = Sink(table.name, out, positions, remembered, endpoint, rows)
            requests[endpoint].pull_rows(sink, asked, self._wire.of(table.name))
        return out

    def _push_dense(
        self, requests: list[Request], name: str, gradient: F32, versions: Versions, precision: str
    ) -> None:
        blocks = self._parameter(name)
        shape = blocks[0][1].shape
        if gradient.size != math.prod(shape):
            raise _misfit(name, gradient.shape, shape)
        flat = np.ascontiguousarray(gradient, np.float32).reshape(-1)
        specs = [spec for _, spec in blocks]
        made = self._residuals.narrowed(name, flat, specs, precision)
        for (index, spec), block in zip(blocks, made, strict=True):
            version = versions.get((self._buckets[index].endpoint, spec.name), 0)
            requests[index].push_block(spec.name, version, block, self.rates.get(name))

    def _push_rows(
        self,
        requests: list[Request],
        table: SparseTableSpec,
        gradient: SelectedRows,
        versions: Versions,
        precision: str,
    ) -> None:
        if gradient.values.shape[1] != table.width:
            raise _misfit(table.name, gradient.values.shape, (len(gradient.ids), table.width))
        merged = row_kernels.merge(gradient)
        to_all = moves_all_rows(table.optimizer)
        known = None if to_all else self.known_ids.find(table.name, merged.ids)
        owners = known.owners if known is not None else self._by_owner(merged.ids, to_all)
        for endpoint, positions in owners:
            number = self.known_ids.number_for(known, endpoint)
            part = merged if positions is None else self._part_of(merged, positions)
            values = narrow(part.values, precision, small=True)
            rows = RowsGradient(part.ids, values, part.counts, number)
            version = versions.get((endpoint, table.name), 0)
            requests[endpoint].push_rows(table.name, version, rows, self.rates.get(table.name))

    def _by_owner(self, ids: I64, to_all: bool = False) -> Owners:
        """Positions of `ids` by owner; endpoints that own none are left out unless `to_all`."""
        if not len(ids) and not to_all:
            return []
        if self._endpoints == 1:
            return [(0, None)]
        order, counts = row_kernels.partition_ids(
            ids, self._shard_bounds, int(self._shard_bounds[-1])
        )
        ends = np.cumsum(counts).tolist()
        starts = [0, *ends[:-1]]
        ranges = enumerate(zip(starts, ends, strict=True))
        return [(e, order[start:end]) for e, (start, end) in ranges if start < end or to_all]

    def _part_of(self, rows: SelectedRows, positions: I32) -> SelectedRows:
        """The rows at `positions` (n,)."""
        ids = self._empty((len(positions),), rows.ids.dtype)
        np.take(rows.ids, positions, out=ids, mode="clip")
        counts = None if rows.counts is None else self._gathered(rows.counts, positions)
        values = self._gathered(rows.values, positions)
        return SelectedRows(ids, values, rows.height, rows.unique, counts)

    def _gathered(self, values: F32, positions: I32) -> F32:
        out = self._empty((len(positions), values.shape[1]), values.dtype)
        row_kernels.gather(values, positions, out)
        return out

    def _parameter(self, name: str) -> list[tuple[int, DenseTableSpec]]:
        if name not in self._blocks:
            raise _unknown(name, "dense parameter")
        return self._blocks[name]

    def _table(self, name: str) -> SparseTableSpec:
        if name not in self._tables:
            raise _unknown(name, "sparse table")
        return self._tables[name]


def _buckets(plan: PartitionPlan, number: Mapping[str, int]) -> list[_Bucket]:
    """All buckets, 0 of each endpoint first, so that their indices are the endpoints' numbers."""
    further = {_Bucket(block.spec.section, number[block.endpoint]) for block in plan.blocks}
    return sorted(further | {_Bucket(0, endpoint) for endpoint in number.values()})


def _needing(requests: list[Request], name: str, leave_out: LeaveOut) -> list[Request]:
    """The requests, with one that is never sent in place of each that needs no gradient `name`."""
    return [
        Request(each.endpoint, each.bucket) if leave_out(name, each.endpoint, each.bucket) else each
        for each in requests
    ]


def _check_names(wire: WirePrecision, known: list[str]) -> None:
    for name in wire.tables:
        if name not in known:
            nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.5) or known[:8]
            raise ConfigError(
                f"a wire precision is given for {name!r}, which is no parameter of the program.",
                hint=f"Did you mean {nearest[0]!r}?" if nearest else "",
            )


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
