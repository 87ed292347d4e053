"""The load of each pserver and of each trainer: memory, calls and bytes.

Combines `footprint` (memory of tables) and `traffic` (calls of a step) by the partition plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from psrt.core.precision import WirePrecision
from psrt.core.specs import CommunicationMode, DenseTableSpec
from psrt.partition.plan import PartitionPlan
from psrt.sizing import costs
from psrt.sizing.footprint import (
    DenseFootprint,
    SparseFootprint,
    dense_footprint,
    held_footprint,
    remembered_bytes,
)
from psrt.sizing.traffic import (
    LINK_EFFICIENCY,
    CallKind,
    PserverContents,
    TableUse,
    calls_of_step,
    dense_wire_bytes,
)

PROCESS_BYTES = 170 << 20
"""An empty pserver: Python, numpy, compiled kernels, gRPC (measured: 2026, x86-64)."""

CONNECTION_BYTES = 64 << 10
"""A little-used connection: its thread's stack and its smallest buffer."""

MAX_MESSAGE_BYTES = 1 << 30
"""Default limit of one message to a pserver (max_message_mib)."""


@dataclass(frozen=True)
class Workload:
    """A running job: `steps_per_s` of one trainer, 0 = unknown; `wire` of dense parameters."""

    mode: CommunicationMode
    trainers: int
    steps_per_s: float
    uses: tuple[TableUse, ...]
    wire: WirePrecision = field(default_factory=WirePrecision)


@dataclass(frozen=True)
class PserverLoad:
    """Memory of one pserver, and the calls of all trainers to it."""

    endpoint: str
    sparse: tuple[SparseFootprint, ...]
    dense: DenseFootprint
    remembered_bytes: float
    calls: tuple[CallKind, ...]
    trainers: int
    steps_per_s: float

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.sparse)

    @property
    def connections(self) -> int:
        """One per kind of call and trainer, more for buckets; a thread for each of them."""
        return self.trainers * sum(call.connections for call in self.calls)

    @property
    def buffer_bytes(self) -> float:
        """Memory of connections while all trainers call at once, as they do in Sync.

        They hold requests, and rows of replies. Dense values are sent from a shared snapshot.
        """
        busy = sum(
            call.connections * (call.request.size_bytes + call.reply.row_bytes)
            for call in self.calls
        )
        return self.trainers * busy + self.connections * CONNECTION_BYTES

    @property
    def memory_bytes(self) -> float:
        tables = sum(table.total_bytes for table in self.sparse) + self.dense.total_bytes
        return PROCESS_BYTES + tables + self.remembered_bytes + self.buffer_bytes

    @property
    def cpu_s_per_step(self) -> float:
        """CPU seconds for a step of one trainer."""
        return costs.python_s(self.calls) + costs.compiled_s(self.calls)

    def cpu_used(self, cores: int) -> float:
        """The busy fraction of its cores, or of the one that runs Python if that is more."""
        python, compiled = costs.python_s(self.calls), costs.compiled_s(self.calls)
        return self.steps_of_all_per_s * max(python, (python + compiled) / cores)

    @property
    def requests_per_s(self) -> float:
        return self.steps_of_all_per_s * sum(call.per_step for call in self.calls)

    @property
    def in_bytes_per_s(self) -> float:
        """Bytes on the link, including the headers of TCP, IP and Ethernet."""
        up = sum(call.up_bytes for call in self.calls)
        return self.steps_of_all_per_s * up / LINK_EFFICIENCY

    @property
    def out_bytes_per_s(self) -> float:
        down = sum(call.down_bytes for call in self.calls)
        return self.steps_of_all_per_s * down / LINK_EFFICIENCY

    @property
    def link_bytes_per_s(self) -> float:
        """Bytes a second in the busier direction."""
        return max(self.in_bytes_per_s, self.out_bytes_per_s)

    @property
    def largest_message_bytes(self) -> float:
        return max(max(call.request.size_bytes, call.reply.size_bytes) for call in self.calls)

    @property
    def steps_of_all_per_s(self) -> float:
        return self.trainers * self.steps_per_s


@dataclass(frozen=True)
class TrainerLoad:
    """Bytes and calls of one trainer in a step, and bytes on its link in a second."""

    up_bytes: float
    down_bytes: float
    requests: float
    steps_per_s: float

    @property
    def out_bytes_per_s(self) -> float:
        """Bytes on the link, including the headers of TCP, IP and Ethernet."""
        return self.steps_per_s * self.up_bytes / LINK_EFFICIENCY

    @property
    def in_bytes_per_s(self) -> float:
        return self.steps_per_s * self.down_bytes / LINK_EFFICIENCY

    @property
    def link_bytes_per_s(self) -> float:
        """Bytes a second in the busier direction."""
        return max(self.out_bytes_per_s, self.in_bytes_per_s)


def loads_of(plan: PartitionPlan, workload: Workload, stripes: int) -> tuple[PserverLoad, ...]:
    """The load of each pserver, in the order of the plan."""
    blocks: dict[str, list[DenseTableSpec]] = {endpoint: [] for endpoint in plan.endpoints}
    for block in plan.blocks:
        blocks[block.endpoint].append(block.spec)
    bounds, made = plan.shard_bounds, dict[_Holdings, PserverLoad]()
    loads = []
    for number, (endpoint, specs) in enumerate(blocks.items()):
        held = _Holdings(tuple(specs), bounds[number + 1] - bounds[number], number == 0)
        if held not in made:  # most pservers of a large plan are equal
            made[held] = _load_of(held, bounds[-1], workload, stripes)
        loads.append(replace(made[held], endpoint=endpoint))
    return tuple(loads)


@dataclass(frozen=True)
class _Holdings:
    """The part of a plan on one pserver."""

    blocks: tuple[DenseTableSpec, ...]
    shards: int
    is_first: bool


def _load_of(held: _Holdings, virtual_shards: int, workload: Workload, stripes: int) -> PserverLoad:
    mode, trainers, uses = workload.mode, workload.trainers, workload.uses
    fraction = held.shards / virtual_shards
    dense_bytes = sum(
        dense_wire_bytes(spec.size, workload.wire.of(spec.parameter)) for spec in held.blocks
    )
    buckets = len({spec.section for spec in held.blocks} | {0})
    contents = PserverContents(dense_bytes, len(held.blocks), fraction, buckets)
    calls = calls_of_step(mode, uses, contents, trainers)
    return PserverLoad(
        "",
        tuple(held_footprint(u.spec, u.rows, stripes, fraction) for u in uses),
        dense_footprint(held.blocks, mode, trainers),
        remembered_bytes(mode, _pushed_between_exchanges(workload) * fraction),
        tuple(call for call in calls if call.to_all or held.is_first),
        trainers,
        workload.steps_per_s,
    )


def _pushed_between_exchanges(workload: Workload) -> float:
    steps = workload.trainers * getattr(workload.mode, "update_frequency", 0)
    return sum(use.distinct_after(steps) for use in workload.uses)


__all__ = ["CONNECTION_BYTES", "MAX_MESSAGE_BYTES", "PROCESS_BYTES", "PserverLoad", "TrainerLoad"]
__all__ += ["Workload", "loads_of"]
