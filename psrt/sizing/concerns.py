"""Warnings about a plan or a cluster: uneven, too small, or beyond a limit."""

from __future__ import annotations

from collections.abc import Iterator

from psrt.core.quantities import format_bytes, format_rate
from psrt.kernels.tables import SLOTS
from psrt.partition.plan import PartitionPlan
from psrt.sizing.loads import MAX_MESSAGE_BYTES
from psrt.sizing.sizing import Sizing

UNEVEN = 2.0
"""Least ratio of the fullest pserver to the emptiest that is reported."""

DENSE_THAT_MATTERS_BYTES = 1 << 20
"""Less of it on a pserver is never reported."""
_MANY_CONNECTIONS = 4096


def of_plan(plan: PartitionPlan) -> Iterator[str]:
    """Warnings about pservers that hold twice as much as others."""
    balances = [plan.balance_of(endpoint) for endpoint in plan.endpoints]
    most, least = (choose(balances, key=lambda each: each.dense_bytes) for choose in (max, min))
    if most.dense_bytes >= max(DENSE_THAT_MATTERS_BYTES, UNEVEN * least.dense_bytes):
        yield (
            f"dense parameters are uneven: {most.endpoint} holds {format_bytes(most.dense_bytes)}, "
            f"{least.endpoint} {format_bytes(least.dense_bytes)}. Lower min_block_size in "
            '[partition] to cut smaller parameters too, or try split_method = "HashName".'
        )
    wide, narrow = (choose(each.virtual_shards for each in balances) for choose in (max, min))
    if plan.sparse and wide >= UNEVEN * narrow:
        yield (
            f"sparse rows are uneven: some pservers hold {wide} virtual shards of every table, "
            f"others {narrow}. With {plan.shard_bounds[-1]} virtual shards, {len(balances)} "
            "pservers are too many to share them evenly."
        )


def of_sizing(sizing: Sizing) -> Iterator[str]:
    """Warnings about exceeded limits, and about numbers that a real cluster could not handle."""
    yield from of_plan(sizing.plan)
    for limit, part in sizing.used.items():
        if part > 1:
            yield f"a pserver would need {part:.1f} times its {limit}; take more of them."
    limits = sizing.limits
    if sizing.trainer.link_bytes_per_s > limits.link_bytes_per_s:
        yield (
            "a trainer's own link would have to carry "
            f"{format_rate(sizing.trainer.link_bytes_per_s)}: more pservers do not "
            "help. Use larger steps, or a mode that sends less, such as geo."
        )
    yield from _of_stripes(sizing)
    yield from _of_messages(sizing)


def _of_stripes(sizing: Sizing) -> Iterator[str]:
    stripes = sizing.limits.stripes
    for table in max(sizing.loads, key=lambda load: load.rows).sparse:
        if table.rows > stripes * SLOTS:
            yield (
                f"a pserver would hold {table.rows:,} rows of {table.table}, but at most {SLOTS:,} "
                f"fit into a stripe and it has {stripes}: raise stripes in [pserver] and [size], "
                "or take more pservers."
            )


def _of_messages(sizing: Sizing) -> Iterator[str]:
    largest = max(load.largest_message_bytes for load in sizing.loads)
    if largest > MAX_MESSAGE_BYTES:
        yield (
            f"a message of {format_bytes(largest)} is beyond what a pserver takes: raise "
            "max_message_mib in [pserver], or take more pservers."
        )
    most = max(load.connections for load in sizing.loads)
    if most > _MANY_CONNECTIONS:
        yield (
            f"a pserver has {most:,} connections, each with a thread: raise max_connections in "
            "[pserver] and its limits of open files and threads."
        )


__all__ = ["of_plan", "of_sizing"]
