"""Tags of the elements of each example: a linear chain of them as a conditional random field.

`transition` (tags + 2, tags) holds weights: row 0 of the first tag of an example, row 1 of the last
one, row 2 + i of the tags behind tag i.
"""

from __future__ import annotations

from psrt.graph.ops.sequence import need_ragged
from psrt.graph.ops.table import ROWS, OpCall, TensorType, Types, define


def _need_chain(call: OpCall) -> TensorType:
    x, transition = need_ragged(call, "input"), call.need_ndim("transition", 2)
    fits = x.is_float and len(x.shape) == 2
    call.need(fits, f"argument input is {x}, not ragged floats, one of each tag")
    tags = x.shape[1]
    fits = transition.shape == (tags + 2, tags)
    call.need(fits, f"weights of shape {transition.shape} are not those of {tags} tags")
    for label in call.many("label"):
        fits = label.ragged and label.dtype == "int64" and label.shape in ((ROWS,), (ROWS, 1))
        call.need(fits, f"argument label is {label}, not one int64 tag an element")
    return x


@define(
    "linear_chain_crf", inputs="input transition label", outputs="out alpha", ragged="input label"
)
def linear_chain_crf(call: OpCall) -> Types:
    """−ln P(label | input) of each example: ragged (n, tags) → (rows, 1); 0 of an empty one."""
    x = _need_chain(call)
    return {"out": TensorType((ROWS, 1), x.dtype), "alpha": x}


@define("crf_decoding", inputs="input transition label?", ragged="input label")
def crf_decoding(call: OpCall) -> Types:
    """The most probable tags: ragged (n, tags) → int64 (n, 1); with a label 1 where they agree."""
    _need_chain(call)
    return {"out": TensorType((ROWS, 1), "int64", ragged=True)}
