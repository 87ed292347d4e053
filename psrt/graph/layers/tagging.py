"""Tags of the elements of each example, by a linear chain (Lafferty et al. 2001)."""

from __future__ import annotations

from psrt.graph.builder import Layer, Vars
from psrt.graph.initializer import Xavier
from psrt.graph.param import Param
from psrt.graph.program import Var


def linear_chain_crf(input: Var, label: Var, param: Param | str | None = None) -> Var:
    """−ln P(label | input) of each example: ragged (n, tags) and int64 (n, 1) → (rows, 1).

    The parameter (tags + 2, tags) holds weights of first tags, of last ones, and of each pair.
    """
    layer = Layer("linear_chain_crf")
    inputs: dict[str, Vars] = {"input": input, "label": label}
    return layer.op("linear_chain_crf", inputs | {"transition": _weights(layer, input, param)})


def crf_decoding(input: Var, param: Param | str, label: Var | None = None) -> Var:
    """Most probable tags of each example: ragged (n, tags) → ragged int64 (n, 1).

    `param` is that of `linear_chain_crf`. With a `label` it is 1 where they agree, else 0.
    """
    layer = Layer("crf_decoding")
    inputs: dict[str, Vars] = {"input": input, "transition": _weights(layer, input, param)}
    if label is not None:
        inputs["label"] = label
    return layer.op("crf_decoding", inputs)


def _weights(layer: Layer, input: Var, param: Param | str | None) -> Var:
    (x,) = layer.checked("input", input)
    if len(x.shape) != 2:
        raise layer.error(f"argument input is {x.type}, not ragged floats, one of each tag")
    return layer.parameter("w_0", (x.shape[1] + 2, x.shape[1]), param, Xavier())
