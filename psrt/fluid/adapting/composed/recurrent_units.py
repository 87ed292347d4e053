"""One step of recurrent units, for `StaticRNN` and `DynamicRNN`."""

from __future__ import annotations

from typing import Any

from psrt.fluid.adapting.composed.calls import called, layer_of
from psrt.fluid.adapting.written_layers import create_parameter
from psrt.fluid.framework import default_main_program
from psrt.fluid.names import Variable
from psrt.graph import layers as psrt_layers

_fc = layer_of("fc")


def lstm_unit(
    x_t: Variable,
    hidden_t_prev: Variable,
    cell_t_prev: Variable,
    forget_bias: float = 0.0,
    param_attr: Any = None,
    bias_attr: Any = None,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """One step of an LSTM: (hidden, cell) (rows, size) of x_t (rows, d) and the step before.

    c = f · c + i · tanh(g), h = o · tanh(c); i, f, o and g are columns of one projection.
    """
    size = cell_t_prev.shape[1]
    both = called(psrt_layers.concat, [x_t, hidden_t_prev], 1)
    gates = _fc(both, 4 * size, param_attr=param_attr, bias_attr=bias_attr)
    i, f, o, g = default_main_program().call(psrt_layers.split, gates, 4, 1)
    kept = cell_t_prev * called(psrt_layers.sigmoid, f + forget_bias)
    cell = kept + called(psrt_layers.sigmoid, i) * called(psrt_layers.tanh, g)
    return called(psrt_layers.sigmoid, o) * called(psrt_layers.tanh, cell), cell


def gru_unit(
    input: Variable,
    hidden: Variable,
    size: int,
    param_attr: Any = None,
    bias_attr: Any = None,
    activation: str = "tanh",
    gate_activation: str = "sigmoid",
    origin_mode: bool = False,
) -> tuple[Variable, Variable, Variable]:
    """One step of gated recurrent units: (hidden, reset hidden, gates) of input (rows, size).

    `size` is three times that of the state. The new state is (1 − u) · hidden + u · candidate, or
    with `origin_mode` the opposite.
    """
    width, call = size // 3, default_main_program().call
    gate, act = getattr(psrt_layers, gate_activation), getattr(psrt_layers, activation)
    weight = create_parameter([width, size], attr=param_attr)
    of_gates, of_candidate = call(_gru_weights, weight, width)
    x = input if bias_attr is False else input + _bias(size, bias_attr)
    for_gates, for_candidate = call(psrt_layers.split, x, [2 * width, width], 1)
    made = call(gate, for_gates + called(psrt_layers.matmul, hidden, of_gates))
    update, reset = call(psrt_layers.split, made, 2, 1)
    reset_hidden = reset * hidden
    candidate = call(act, for_candidate + called(psrt_layers.matmul, reset_hidden, of_candidate))
    share = 1.0 - update if origin_mode else update
    new = hidden + share * (candidate - hidden)
    return new, reset_hidden, call(psrt_layers.concat, [made, candidate], 1)


def _gru_weights(weight: Any, width: int) -> tuple[Any, Any]:
    """Return the weights of both gates and of the candidate, which follow in one memory."""
    flat, cut = psrt_layers.reshape(weight, (3 * width * width,)), 2 * width * width
    gates = psrt_layers.slice(flat, [0], [0], [cut])
    candidate = psrt_layers.slice(flat, [0], [cut], [3 * width * width])
    return (
        psrt_layers.reshape(gates, (width, 2 * width)),
        psrt_layers.reshape(candidate, (width, width)),
    )


def _bias(size: int, attr: Any) -> Variable:
    return create_parameter([size], attr=attr, is_bias=True)


__all__ = ["gru_unit", "lstm_unit"]
