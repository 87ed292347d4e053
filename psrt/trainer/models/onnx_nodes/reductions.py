"""Ops that make fewer elements of many: sums, extremes, running sums, norms, the best k."""

from __future__ import annotations

from psrt.trainer.models.onnx_nodes.table import Drawing, exports

_REDUCTIONS = {
    "reduce_sum": "ReduceSum",
    "reduce_mean": "ReduceMean",
    "reduce_max": "ReduceMax",
    "reduce_min": "ReduceMin",
    "reduce_prod": "ReduceProd",
}


@exports("mean")
def mean(d: Drawing) -> None:
    d.node("ReduceMean", (d.one("x"),), d.out(), keepdims=0)


@exports(*_REDUCTIONS)
def reduction(d: Drawing) -> None:
    type, keep = _REDUCTIONS[d.op.type], int(d.attrs["keep_dims"])
    d.node(type, (d.one("x"), d.ints(*d.attrs["axes"])), d.out(), keepdims=keep)


@exports("cumsum")
def cumsum(d: Drawing) -> None:
    flags = {name: int(d.attrs[name]) for name in ("exclusive", "reverse")}
    d.node("CumSum", (d.one("x"), d.number(d.attrs["axis"], "int64")), d.out(), **flags)


@exports("argmax", "argmin")
def position(d: Drawing) -> None:
    type = {"argmax": "ArgMax", "argmin": "ArgMin"}[d.op.type]
    d.node(type, (d.one("x"),), d.out(), axis=d.attrs["axis"], keepdims=0)


@exports("topk")
def topk(d: Drawing) -> None:
    outs = d.out(), d.out("indices")
    d.node("TopK", (d.one("input"), d.ints(d.attrs["k"])), *outs, axis=-1)


@exports("l2_normalize")
def l2_normalize(d: Drawing) -> None:
    squares = d.node("Mul", (d.one("x"), d.one("x")))
    total = d.node("ReduceSum", (squares, d.ints(d.attrs["axis"])), keepdims=1)
    raised = d.node("Add", (total, d.number(d.attrs["epsilon"])))
    norm = d.node("Sqrt", (raised,), d.out("norm"))
    d.node("Div", (d.one("x"), norm), d.out())
