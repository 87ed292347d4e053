"""The placement of a plan as text and as data: the endpoint of each block, and the balance.

`psrt plan` prints `to_text`, or `to_plain` as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from psrt.core.columns import aligned
from psrt.core.types import Shape
from psrt.partition.plan import PartitionPlan

_FLOAT_BYTES = 4


def to_text(plan: PartitionPlan) -> str:
    """A text table each of blocks, sparse tables and balance; empty ones are left out."""
    parts = [aligned(list(_block_rows(plan)), left=(0, 1, 2, 6)) if plan.blocks else []]
    parts += [aligned(list(_table_rows(plan))) if plan.sparse else []]
    parts += [plan.balance().split("\n")]
    return "\n\n".join("\n".join(part) for part in parts if part)


def to_plain(plan: PartitionPlan) -> dict[str, Any]:
    """Sizes and offsets count elements; ranges of virtual shards are [first, last + 1]."""
    return {
        "plan_hash": plan.hash(),
        "endpoints": list(plan.endpoints),
        "blocks": [
            {
                "block": block.spec.name,
                "parameter": block.spec.parameter,
                "shape": list(block.spec.shape),
                "offset": block.spec.offset,
                "size": block.spec.size,
                "endpoint": block.endpoint,
            }
            for block in plan.blocks
        ],
        "tables": [
            {"table": spec.name, "width": spec.width, "virtual_shards": _shards(plan)}
            for spec in plan.sparse
        ],
        "balance": [asdict(plan.balance_of(endpoint)) for endpoint in plan.endpoints],
    }


def _block_rows(plan: PartitionPlan) -> Iterator[tuple[str, ...]]:
    yield "block", "parameter", "shape", "offset", "size", "bytes", "endpoint"
    for block in plan.blocks:
        spec = block.spec
        numbers = (spec.offset, spec.size, spec.size * _FLOAT_BYTES)
        listed = (f"{number:,}" for number in numbers)
        yield spec.name, spec.parameter, _of_shape(spec.shape), *listed, block.endpoint


def _table_rows(plan: PartitionPlan) -> Iterator[tuple[str, ...]]:
    yield "sparse table", "width", *(f"shards of {endpoint}" for endpoint in plan.endpoints)
    ranges = [f"{first} to {last - 1}" for first, last in _shards(plan).values()]
    for spec in plan.sparse:
        yield spec.name, str(spec.width), *ranges


def _shards(plan: PartitionPlan) -> dict[str, list[int]]:
    bounds = plan.shard_bounds
    return {
        endpoint: [bounds[number], bounds[number + 1]]
        for number, endpoint in enumerate(plan.endpoints)
    }


def _of_shape(shape: Shape) -> str:
    return "×".join(str(length) for length in shape)


__all__ = ["to_plain", "to_text"]
