"""Ops that draw random numbers."""

from __future__ import annotations

from psrt.graph.ops.table import OpCall, TensorType, Types, define

DROPOUTS = ("downgrade_in_infer", "upscale_in_train")


@define("dropout", inputs="x", outputs="out mask", ragged="x")
def dropout(call: OpCall) -> Types:
    """Keep each element with probability 1 − p, otherwise 0.

    Srivastava et al. 2014, "Dropout: a simple way to prevent neural networks from overfitting".
    attrs: p; implementation, one of `DROPOUTS`; seed; fix_seed, which draws one mask for all steps;
    is_test. `mask` is 1 where an element is kept, and stale in a test.
    """
    x, p, how = call.need_float("x"), call.attrs["p"], call.attrs["implementation"]
    call.need(len(x.shape) >= 1, f"argument x must have a dimension of rows, not {x}")
    call.need(0 <= p <= 1, f"argument dropout_prob {p} is not within 0 and 1")
    known = ", ".join(DROPOUTS)
    call.need(how in DROPOUTS, f"argument dropout_implementation {how!r} is not one of {known}")
    return {"out": x, "mask": TensorType(x.shape, "uint8", x.ragged)}
