"""Cutting of dense parameters into blocks.

A block is a contiguous run of the flattened parameter. With S pservers and a smallest block of m
elements a parameter of N elements becomes cnt = min(S, max(1, N // m)) blocks of ceil(N / cnt)
elements, rounded up to whole rows so that no row of a matrix is ever cut; rounding may leave fewer
blocks than cnt. The blocks of a parameter cover it exactly once, in order.

Fluid's formula ends here. In addition, no block has more than `max_block_size` elements, unless a
row or `min_block_size` has: blocks of a large parameter travel and are updated in parallel
(`buckets`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from psrt.core.errors import ConfigError
from psrt.core.types import Shape

DEFAULT_MIN_BLOCK_SIZE = 8192
DEFAULT_MAX_BLOCK_SIZE = 1 << 20


@dataclass(frozen=True)
class Block:
    """Number `index` of the `count` blocks of `parameter`: elements `[offset, offset + size)`."""

    parameter: str
    index: int
    count: int
    offset: int
    size: int

    @property
    def name(self) -> str:
        """`fc_0.w_0.block1`; a parameter of one block keeps its own name."""
        return self.parameter if self.count == 1 else f"{self.parameter}.block{self.index}"


def _block_size(shape: Shape, pservers: int, least: int, most: int) -> int:
    """Elements of every block except the last, which holds the rest."""
    size = math.prod(shape)
    width = math.prod(shape[1:]) if len(shape) > 1 else 1
    needed = -(-(size // width) // max(1, most // width))
    wanted = max(min(pservers, max(1, size // least)), needed)
    even = -(-size // wanted)
    return -(-even // width) * width


def cut(
    parameter: str,
    shape: Shape,
    pservers: int,
    *,
    slice_var_up: bool = True,
    min_block_size: int = DEFAULT_MIN_BLOCK_SIZE,
    max_block_size: int = DEFAULT_MAX_BLOCK_SIZE,
) -> list[Block]:
    """The blocks of one dense parameter, in order; one block if `slice_var_up` is False.

    Raises `ConfigError` for a parameter without elements or a `min_block_size` below 1.
    """
    size = math.prod(shape)
    if size == 0:
        raise ConfigError(f"parameter {parameter} of shape {shape} has no elements to place")
    if min_block_size < 1:
        raise ConfigError(f"min_block_size is {min_block_size}; it must be at least 1 element")
    most = max(min_block_size, max_block_size)
    step = _block_size(shape, pservers, min_block_size, most) if slice_var_up else size
    count = -(-size // step)
    return [
        Block(parameter, index, count, index * step, min(step, size - index * step))
        for index in range(count)
    ]


__all__ = ["DEFAULT_MAX_BLOCK_SIZE", "DEFAULT_MIN_BLOCK_SIZE", "Block", "cut"]
