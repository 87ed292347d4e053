"""Rows of a lookup at positions, one by one or pooled over bags, with their gradients.

Rows in float32 on the CPU go through psrt's kernels: the gradient of torch's own `embedding_bag`
over rows takes ten times as long. Everything else, and `torch.compile`, goes through torch. Each
function here is linear and the gradient of the other one of its pair, so gradients of any order
exist.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from psrt.core.types import I64, Array
from psrt.kernels.ops import POOLS, pooling
from psrt.kernels.tables import rows as row_kernels
from psrt.torch.staging import on_device

POOLINGS = "sum", "mean", "max"
_POOLS = {"sum": POOLS["sum"], "mean": POOLS["average"]}


def gathered_rows(rows: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """`rows` (m, width) at `positions` (n,), int32: (n, width)."""
    if not _is_plain(rows):
        return rows.index_select(0, positions)
    found: torch.Tensor = _Gathered.apply(rows, positions)
    return found


def pooled_rows(
    rows: torch.Tensor,
    positions: torch.Tensor,
    offsets: torch.Tensor | None,
    mode: str,
    weights: torch.Tensor | None = None,
    include_last_offset: bool = False,
    padding: int | None = None,
) -> torch.Tensor:
    """Pool `rows` (m, width) over bags of `positions`: (batch, width).

    The arguments are those of `torch.nn.functional.embedding_bag`, and so are the errors.
    """
    if offsets is not None:
        offsets = on_device(offsets, positions.device)
    if weights is not None:
        weights = on_device(weights, positions.device).to(rows.dtype)
    if weights is None and padding is None and mode in _POOLS and _is_plain(rows):
        ends = _ends(positions, offsets, include_last_offset)
        if ends is not None:
            return _pooled_here(rows, positions.reshape(-1), ends, mode)
    return F.embedding_bag(
        positions,
        rows,
        None if offsets is None else offsets.to(positions.dtype),
        mode=mode,
        per_sample_weights=weights,
        include_last_offset=include_last_offset,
        padding_idx=padding,
    )


def _pooled_here(rows: torch.Tensor, positions: torch.Tensor, ends: I64, mode: str) -> torch.Tensor:
    """Pool by psrt's kernels; bags of one id each are its rows."""
    if len(ends) == len(positions) + 1 and _are_single(ends):
        return gathered_rows(rows, positions)
    bags: torch.Tensor = _Pooled.apply(rows, positions, ends, _POOLS[mode])
    return bags


def _is_plain(rows: torch.Tensor) -> bool:
    is_here = rows.device.type == "cpu" and rows.dtype == torch.float32
    return is_here and not torch.compiler.is_compiling()


def _ends(positions: torch.Tensor, offsets: torch.Tensor | None, has_last: bool) -> I64 | None:
    """The ends of bags, (bags + 1,) int64 from 0 on; None for what torch treats specially.

    Kernels trust it.
    """
    if offsets is None:
        return _equal_ends(*positions.shape) if positions.dim() == 2 and not has_last else None
    if positions.dim() != 1 or offsets.dim() != 1 or not len(offsets):
        return None
    ends: I64 = offsets.detach().numpy().astype(np.int64)
    if not has_last:
        ends = np.append(ends, len(positions))
    is_rising = ends[0] == 0 and ends[-1] == len(positions) and bool((ends[1:] >= ends[:-1]).all())
    return ends if is_rising else None


def _equal_ends(bags: int, size: int) -> I64:
    return np.arange(bags + 1, dtype=np.int64) * size


def _are_single(ends: I64) -> bool:
    """True if each bag has one id; there are as many bags as ids."""
    return bool((ends[1:] > ends[:-1]).all())


def _numbers(tensor: torch.Tensor) -> Array:
    numbers: Array = tensor.detach().contiguous().numpy()
    return numbers


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        ctx.positions, ctx.rows = positions, len(rows)
        out = torch.empty(len(positions), rows.shape[1])
        row_kernels.gather(_numbers(rows), _numbers(positions), out.numpy())
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return _Scattered.apply(grad, ctx.positions, ctx.rows), None


class _Scattered(torch.autograd.Function):
    """Sums of values (n, width) by position: (rows, width)."""

    @staticmethod
    def forward(ctx: Any, values: torch.Tensor, positions: torch.Tensor, rows: int) -> torch.Tensor:
        ctx.positions = positions
        out = torch.zeros(rows, values.shape[1])
        row_kernels.scatter_add_(out.numpy(), _numbers(positions), _numbers(values))
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return _Gathered.apply(grad, ctx.positions), None, None


class _Pooled(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, rows: torch.Tensor, positions: torch.Tensor, ends: I64, pool: int
    ) -> torch.Tensor:
        ctx.bags, ctx.rows = (positions, ends, pool), len(rows)
        out = torch.empty(len(ends) - 1, rows.shape[1])
        pooling.pool_rows(_numbers(rows), _numbers(positions), ends[None], pool, out.numpy())
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return _Spread.apply(grad, *ctx.bags, ctx.rows), None, None, None


class _Spread(torch.autograd.Function):
    """Values (bags, width) spread over the rows of their bags: (rows, width)."""

    @staticmethod
    def forward(
        ctx: Any, values: torch.Tensor, positions: torch.Tensor, ends: I64, pool: int, rows: int
    ) -> torch.Tensor:
        ctx.bags = positions, ends, pool
        width = values.shape[1]
        out, spread = torch.zeros(rows, width), _numbers(values).reshape(-1)
        pooling.pool_rows_grad_(out.numpy(), _numbers(positions), ends[None], pool, spread, width)
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return _Pooled.apply(grad, *ctx.bags), None, None, None, None
