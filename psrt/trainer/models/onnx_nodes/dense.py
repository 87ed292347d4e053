"""Matrix products."""

from __future__ import annotations

from psrt.trainer.models.onnx_nodes.table import Drawing, exports


@exports("fc")
def fc(d: Drawing) -> None:
    terms = [d.node("MatMul", pair) for pair in zip(d.all("x"), d.all("w"), strict=True)]
    total = terms[0]
    for term in (*terms[1:], *d.all("bias")):
        total = d.node("Add", (total, term))
    d.node("Relu" if d.attrs["activation"] == "relu" else "Identity", (total,), d.out())


@exports("matmul")
def matmul(d: Drawing) -> None:
    x, y = _turned(d, "x"), _turned(d, "y")
    product = d.node("MatMul", (x, y))
    d.node("Mul", (product, d.number(d.attrs["alpha"])), d.out())


def _turned(d: Drawing, slot: str) -> str:
    """The last two dimensions exchanged, if the op asks for it."""
    if not d.attrs[f"transpose_{slot}"]:
        return d.one(slot)
    *before, last_but_one, last = range(len(d.shape(slot)))
    return d.node("Transpose", (d.one(slot),), perm=[*before, last, last_but_one])


@exports("dot")
def dot(d: Drawing) -> None:
    products = d.node("Mul", (d.one("x"), d.one("y")))
    d.node("ReduceSum", (products, d.ints(-1)), d.out(), keepdims=1)
