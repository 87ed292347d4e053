"""Arithmetic of two vars with broadcasting, and sums of many."""

from __future__ import annotations

from psrt.trainer.models.onnx_nodes.table import Drawing, exports

_ARITHMETIC = {
    "elementwise_add": "Add",
    "elementwise_sub": "Sub",
    "elementwise_mul": "Mul",
    "elementwise_div": "Div",
    "elementwise_max": "Max",
    "elementwise_min": "Min",
    "elementwise_pow": "Pow",
}


@exports(*_ARITHMETIC)
def arithmetic(d: Drawing) -> None:
    d.node(_ARITHMETIC[d.op.type], (d.one("x"), aligned(d)), d.out())


def aligned(d: Drawing) -> str:
    """y with ones behind it so that its first dimension stands at `axis` of x."""
    axis, x_ndim, y_ndim = d.attrs["axis"], len(d.shape("x")), len(d.shape("y"))
    missing = 0 if axis < 0 else x_ndim - axis - y_ndim
    if missing == 0:
        return d.one("y")
    return d.node("Unsqueeze", (d.one("y"), d.ints(*range(y_ndim, y_ndim + missing))))


@exports("sum")
def sum_all(d: Drawing) -> None:
    d.node("Sum", d.all("x"), d.out())
