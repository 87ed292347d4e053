"""Products between the features of one example."""

from __future__ import annotations

from psrt.trainer.models.onnx_nodes.table import Drawing, exports


@exports("cos_sim")
def cos_sim(d: Drawing) -> None:
    """Return 0 for a zero row, where the quotient would be 0 / 0."""
    x, y = d.one("x"), d.one("y")
    norms = [d.node("Sqrt", (_dot(d, each, each),)) for each in (x, y)]
    product, zero = d.node("Mul", norms), d.number(0)
    cosine = d.node("Div", (_dot(d, x, y), product))
    d.node("Where", (d.node("Equal", (product, zero)), zero, cosine), d.out())


def _dot(d: Drawing, x: str, y: str) -> str:
    """x · y of each row, (rows, 1)."""
    return d.node("ReduceSum", (d.node("Mul", (x, y)), d.ints(1)), keepdims=1)


@exports("fm_interaction")
def fm_interaction(d: Drawing) -> None:
    """((Σ x)² − Σ x²) / 2 over the fields (Rendle 2010, lemma 3.1)."""
    x = d.one("input")
    sums = d.node("ReduceSum", (x, d.ints(1)), d.out("sums"), keepdims=0)
    squares = d.node("ReduceSum", (d.node("Mul", (x, x)), d.ints(1)), keepdims=0)
    twice = d.node("Sub", (d.node("Mul", (sums, sums)), squares))
    if d.attrs["by_column"]:
        d.node("Mul", (twice, d.number(0.5)), d.out())
    else:
        by_column = d.node("Mul", (twice, d.number(0.5)))
        d.node("ReduceSum", (by_column, d.ints(1)), d.out(), keepdims=1)
