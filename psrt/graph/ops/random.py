"""Ops that draw random numbers."""

from __future__ import annotations

from psrt.graph.ops.table import ROWS, OpCall, TensorType, Types, define

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


@define("shuffle_rows", inputs="x", outputs="out order", ragged="x")
def shuffle_rows(call: OpCall) -> Types:
    """The rows of x, all dimensions but the last, in an order drawn in every step.

    attrs: seed; fix_seed, which draws one order for all steps. `order` is the row of each.
    """
    x = call.one("x")
    call.need(len(x.shape) > 1 and x.shape[-1] > 0, f"argument x must have rows, not {x}")
    return {"out": x, "order": TensorType((ROWS,), "int64")}


@define("uniform_random", inputs="input?")
@define("gaussian_random", inputs="input?")
def drawn(call: OpCall) -> Types:
    """Floats drawn in every step, uniformly or normally distributed; no gradient.

    attrs: shape, whose first size may be ROWS, as many as `input` has; a and b, which are the
    bounds, or mean and standard deviation; seed; fix_seed, which draws equal numbers in all steps.
    """
    shape, likes = call.attrs["shape"], call.many("input")
    call.need(all(size >= 1 for size in shape[1:]), f"argument shape {shape} has an unknown size")
    call.need(len(shape) >= 1 and (shape[0] >= 1 or shape[0] == ROWS), f"argument shape is {shape}")
    has_rows = bool(likes) and likes[0].shape[:1] == (ROWS,) and not likes[0].ragged
    fits = has_rows or shape[0] != ROWS
    call.need(fits, f"argument shape {shape} has examples, but no var has as many")
    return {"out": TensorType(shape)}
