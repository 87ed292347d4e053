"""Metrics over many steps: they keep their counts in state vars of the scope."""

from __future__ import annotations

from psrt.graph.ops.table import ROWS, Call, TensorType, Types, define


@define("auc", inputs="x label positives negatives", outputs="out positives negatives")
def auc(call: Call) -> Types:
    """Area under the ROC curve of all examples since the counts were zeroed.

    `positives` and `negatives` (bins,) count examples by score. attrs: from_logits.
    """
    x, label = call.need_float("x"), call.need_float("label")
    for name, found in (("input", x), ("label", label)):
        fits = found.shape == (ROWS, 1)
        call.need(fits, f"argument {name} must have shape (-1, 1), not {found.shape}")
    counts = {name: call.one(name) for name in ("positives", "negatives")}
    return {"out": TensorType((), "float64"), **counts}
