"""Recurrent layers over the elements of each example."""

from __future__ import annotations

from typing import NamedTuple

from psrt.graph.builder import Layer, Vars
from psrt.graph.initializer import Constant, Xavier
from psrt.graph.param import Param
from psrt.graph.program import Var


class LstmStates(NamedTuple):
    """Ragged (n, size): the state and the cell after each element."""

    hidden: Var
    cell: Var


def dynamic_lstm(
    input: Var,
    size: int,
    h_0: Var | None = None,
    c_0: Var | None = None,
    param: Param | str | None = None,
    bias: Param | str | None = None,
    use_peepholes: bool = True,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    cell_activation: str = "tanh",
    candidate_activation: str = "tanh",
) -> LstmStates:
    """Long short-term memory: ragged `input` (n, `size`) → states and cells (n, size / 4).

    `input` is a projection of the elements to the gates candidate, input, forget and output; `size`
    is four times that of the state. States before the first element are `h_0` and `c_0` (rows,
    size / 4), or 0. Activations are sigmoid, tanh, relu or identity (Hochreiter & Schmidhuber 1997;
    peepholes: Gers et al. 2002).
    """
    layer = Layer("dynamic_lstm")
    width = _width(layer, size, 4)
    weight = layer.parameter("w_0", (width, 4 * width), param, Xavier())
    peepholes = layer.flag("use_peepholes", use_peepholes)
    biases = layer.parameter("b_0", ((7 if peepholes else 4) * width,), bias, Constant(0.0))
    inputs: dict[str, Vars] = {"input": input, "weight": weight, "bias": biases}
    inputs |= {slot: var for slot, var in (("h_0", h_0), ("c_0", c_0)) if var is not None}
    both = layer.op(
        "lstm",
        inputs,
        is_reverse=layer.flag("is_reverse", is_reverse),
        gate_activation=gate_activation,
        cell_activation=cell_activation,
        candidate_activation=candidate_activation,
    )
    ends = ((0, width), (width, 2 * width))
    parts = [
        layer.op("slice", {"input": both}, axes=(1,), starts=(start,), ends=(end,))
        for start, end in ends
    ]
    return LstmStates(*parts)


def dynamic_gru(
    input: Var,
    size: int,
    param: Param | str | None = None,
    bias: Param | str | None = None,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    candidate_activation: str = "tanh",
    h_0: Var | None = None,
    origin_mode: bool = False,
) -> Var:
    """Gated recurrent units: ragged `input` (n, 3 · `size`) → states (n, `size`).

    `input` is a projection of the elements to the gates update, reset and candidate. The state
    before the first element is `h_0` (rows, size), or 0. A new state is (1 − update) · old + update
    · candidate, or with `origin_mode` the opposite, as in Cho et al. 2014.
    """
    layer = Layer("dynamic_gru")
    width = layer.whole("size", size, least=1)
    weight = layer.parameter("w_0", (width, 3 * width), param, Xavier())
    biases = layer.parameter("b_0", (3 * width,), bias, Constant(0.0))
    inputs: dict[str, Vars] = {"input": input, "weight": weight, "bias": biases}
    if h_0 is not None:
        inputs["h_0"] = h_0
    return layer.op(
        "gru",
        inputs,
        is_reverse=layer.flag("is_reverse", is_reverse),
        gate_activation=gate_activation,
        candidate_activation=candidate_activation,
        origin_mode=layer.flag("origin_mode", origin_mode),
    )


def _width(layer: Layer, size: int, gates: int) -> int:
    size = layer.whole("size", size, least=gates)
    if size % gates:
        raise layer.error(f"argument size is {size}, not a multiple of {gates}, one for each gate")
    return size // gates
