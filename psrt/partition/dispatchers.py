"""Which endpoint a block goes to: any callable `(blocks, endpoints) -> endpoint of each block`.

All trainers call the dispatcher with the same blocks in the same order and must get the same
answer, in every process: nothing random, nothing salted (Python's own `hash` of a string is).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from psrt.core.errors import ConfigError
from psrt.kernels.hashing import stable_hash
from psrt.partition.slicing import Block

Dispatcher: TypeAlias = Callable[[Sequence[Block], Sequence[str]], Sequence[str]]


def round_robin(blocks: Sequence[Block], endpoints: Sequence[str]) -> list[str]:
    """Endpoints in turn, over all blocks of all parameters."""
    return [endpoints[i % len(endpoints)] for i in range(len(blocks))]


def hash_name(blocks: Sequence[Block], endpoints: Sequence[str]) -> list[str]:
    """By a stable hash of the block's name: placement survives adding other parameters."""
    return [endpoints[stable_hash(block.name) % len(endpoints)] for block in blocks]


DISPATCHERS: dict[str, Dispatcher] = {"RoundRobin": round_robin, "HashName": hash_name}


def dispatcher_named(split_method: str) -> Dispatcher:
    """The dispatcher a configuration names."""
    if split_method not in DISPATCHERS:
        known = ", ".join(DISPATCHERS)
        raise ConfigError(f"split_method {split_method!r} is none of {known}")
    return DISPATCHERS[split_method]


def dispatch(
    dispatcher: Dispatcher, blocks: Sequence[Block], endpoints: Sequence[str]
) -> list[str]:
    """Run a dispatcher and refuse an answer that does not place every block on a known endpoint."""
    placed = list(dispatcher(blocks, endpoints))
    if len(placed) != len(blocks):
        raise ConfigError(f"the dispatcher placed {len(placed)} of {len(blocks)} blocks")
    for block, endpoint in zip(blocks, placed, strict=True):
        if endpoint not in endpoints:
            raise ConfigError(
                f"the dispatcher placed block {block.name} on {endpoint!r}, which is no endpoint",
                hint=f"Endpoints are {', '.join(endpoints)}.",
            )
    return placed
