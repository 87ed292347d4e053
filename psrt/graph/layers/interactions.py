"""Layers over pairs of features."""

from __future__ import annotations

from psrt.graph.builder import Layer
from psrt.graph.ops import ROWS
from psrt.graph.program import Var


def cos_sim(X: Var, Y: Var) -> Var:
    """Cosine of the angle between rows: (rows, d), (rows, d) → (rows, 1).

    It is 0, and has no gradient, where a row is zero. Ragged rows give a ragged result.
    """
    return Layer("cos_sim").op("cos_sim", {"x": X, "y": Y})


def fm_interaction(input: Var, width: int | None = None, by_column: bool = False) -> Var:
    """Second-order term of a factorization machine: Σ vᵢ · vⱼ over pairs of fields.

    `input` is (rows, fields, width), or (rows, fields · width) with `width` given, the form that
    `slot_embeddings` returns. The result is (rows, 1); `by_column` returns the products of each
    column, (rows, width), for further layers (He & Chua 2017, "bi-interaction pooling"). Rendle
    2010, "Factorization Machines", lemma 3.1.
    """
    layer = Layer("fm_interaction")
    layer.checked("input", input)
    return layer.op("fm_interaction", {"input": _fields(layer, input, width)}, by_column=by_column)


def _fields(layer: Layer, x: Var, width: int | None) -> Var:
    if len(x.shape) != 2:
        return x
    width = None if width is None else layer.whole("width", width)
    if width is None or width < 1 or x.shape[1] % width:
        raise layer.error(
            f"argument width {width} does not divide argument input of shape {x.shape} into fields"
        )
    return layer.op("reshape", {"x": x}, shape=(ROWS, x.shape[1] // width, width))
