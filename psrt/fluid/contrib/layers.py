"""`fluid.contrib.layers`: layers that were composed for speed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psrt.core.errors import ProgramError
from psrt.fluid.layers import LAYERS
from psrt.fluid.names import Variable, missing


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


__all__ = ["fused_embedding_seq_pool"]


def __getattr__(name: str) -> Any:
    raise missing("fluid.contrib.layers", name, __all__)
