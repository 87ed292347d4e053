"""Layers composed for speed, and rows in another order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psrt.core.errors import ProgramError
from psrt.fluid.framework import default_main_program
from psrt.fluid.layers import LAYERS
from psrt.fluid.names import Variable
from psrt.graph import layers as psrt_layers


def fused_embedding_seq_pool(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    padding_idx: int | None = None,
    combiner: str = "sum",
    param_attr: Any = None,
    dtype: Any = "float32",
) -> Variable:
    """Sum of the rows of each example's ids: ids (rows, any) → float32 (rows, size[1]).

    Raises `ProgramError` for another `combiner`.
    """
    if combiner != "sum":
        raise ProgramError(
            f"fused_embedding_seq_pool was asked to combine by {combiner!r}; it sums.",
            hint="Use layers.embedding and layers.sequence_pool.",
        )
    rows = LAYERS["embedding"](
        input, size, is_sparse, padding_idx=padding_idx, param_attr=param_attr, dtype=dtype
    )
    pooled: Variable = LAYERS["sequence_pool"](rows, "sum")
    return pooled


def shuffle_batch(x: Variable, seed: int | None = None) -> Variable:
    """Return the rows of `x` in an order that is drawn in every step, as of a `seed`.

    All dimensions but the last count rows. Gradients go back to the rows they came from.
    """
    made: Variable = default_main_program().call(psrt_layers.shuffle_rows, x, seed)
    return made


__all__ = ["fused_embedding_seq_pool", "shuffle_batch"]
