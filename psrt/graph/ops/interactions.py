"""Products between the features of one example."""

from __future__ import annotations

from psrt.graph.ops.table import OpCall, Types, define


@define("cos_sim", inputs="x y", ragged="x y")
def cos_sim(call: OpCall) -> Types:
    """Cosine of the angle between rows: (rows, d) twice → (rows, 1); 0 for a zero row."""
    x, y = call.need_float("x"), call.one("y")
    call.need(len(x.shape) == 2, f"argument x must have 2 dimensions, not {x}")
    call.need(x == y, f"argument y is {y}, argument x is {x}")
    return {"out": x.reshaped((x.shape[0], 1))}


@define("fm_interaction", inputs="input", outputs="out sums")
def fm_interaction(call: OpCall) -> Types:
    """Σ of products over pairs of fields: (rows, fields, width) → (rows, 1).

    By column: (rows, width). attrs: by_column. `sums`, over the fields, are for the gradient.
    """
    x = call.need_float("input")
    call.need(len(x.shape) == 3, f"argument input must be (batch, fields, width), not {x}")
    rows, _, width = x.shape
    columns = width if call.attrs["by_column"] else 1
    return {"out": x.reshaped((rows, columns)), "sums": x.reshaped((rows, width))}
