"""Layers of Fluid that are made of others, with Fluid's formulas."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from psrt.core.errors import ProgramError
from psrt.fluid.adapting.adapter import adapted, signatures
from psrt.fluid.adapting.layer_table import SIGNATURES
from psrt.fluid.adapting.targets import with_dimensions
from psrt.fluid.adapting.written_layers import create_parameter
from psrt.fluid.framework import default_main_program
from psrt.fluid.names import Variable
from psrt.graph import layers as psrt_layers
from psrt.graph.initializer import Constant

_TABLE = dict(signatures(SIGNATURES))


def _layer(name: str) -> Any:
    return adapted(name, _TABLE[name], getattr(psrt_layers, name))


_fc = _layer("fc")


def squeeze(input: Variable, axes: Sequence[int], name: str | None = None) -> Variable:
    """Drop the dimensions `axes`, which have size 1; all such when none is named.

    Lists of ids (n, 1) and their rows have no dimension 1 of that size here: they stay as they are.
    """
    if input.var.ragged and list(axes) == [1] and input.var.shape[1:2] != (1,):
        return _called(psrt_layers.assign, input)
    made: Variable = default_main_program().call(
        psrt_layers.squeeze, with_dimensions(input), axes, layer_name=name or ""
    )
    return made


def mse_loss(input: Variable, label: Variable) -> Variable:
    """Mean of (input − label)², a scalar."""
    return _called(psrt_layers.mean, _called(psrt_layers.square, input - label))


def brelu(
    x: Variable, t_min: float = 0.0, t_max: float = 24.0, name: str | None = None
) -> Variable:
    """x within t_min and t_max."""
    return _called(psrt_layers.clip, x, t_min, t_max)


def soft_relu(x: Variable, threshold: float = 40.0, name: str | None = None) -> Variable:
    """log(1 + exp(x)), x within ±threshold."""
    return _called(psrt_layers.softplus, _called(psrt_layers.clip, x, -threshold, threshold))


def stanh(
    x: Variable, scale_a: float = 0.67, scale_b: float = 1.7159, name: str | None = None
) -> Variable:
    """scale_b · tanh(scale_a · x)."""
    return _called(psrt_layers.tanh, x * scale_a) * scale_b


def tanh_shrink(x: Variable, name: str | None = None) -> Variable:
    """x − tanh(x)."""
    return x - _called(psrt_layers.tanh, x)


def hard_swish(
    x: Variable,
    threshold: float = 6.0,
    scale: float = 6.0,
    offset: float = 3.0,
    name: str | None = None,
) -> Variable:
    """x · min(max(0, x + offset), threshold) / scale."""
    return x * _called(psrt_layers.clip, x + offset, 0.0, threshold) / scale


def prelu(x: Variable, mode: str, param_attr: Any = None, name: str | None = None) -> Variable:
    """max(0, x) + alpha · min(0, x), alpha 0.25 at first.

    Mode all has one alpha, element one for each element of an example (rows, …). Raises
    `ProgramError` for another mode.
    """
    if mode not in ("all", "element"):
        raise ProgramError(f"layers.prelu was given mode {mode!r}; psrt has 'all' and 'element'.")
    shape = (1,) if mode == "all" else x.shape[1:]
    alpha = create_parameter(shape, attr=param_attr, default_initializer=Constant(0.25))
    negative = x - _called(psrt_layers.relu, x)
    return _called(psrt_layers.relu, x) + _called(psrt_layers.elementwise_mul, negative, alpha)


def label_smooth(
    label: Variable,
    prior_dist: Variable | None = None,
    epsilon: float = 0.1,
    dtype: str = "float32",
    name: str | None = None,
) -> Variable:
    """(1 − epsilon) · label + epsilon · prior_dist, or epsilon / classes without one."""
    kept = label * (1.0 - epsilon)
    if prior_dist is None:
        return kept + epsilon / label.shape[-1]
    return _called(psrt_layers.elementwise_add, kept, prior_dist * epsilon)


def expand_as(x: Variable, target_tensor: Variable, name: str | None = None) -> Variable:
    """Repeat x until it has the sizes of `target_tensor`; rows of examples stay as they are."""
    pairs = zip(x.shape, target_tensor.shape, strict=True)
    times = [1 if size < 0 or to < 0 else to // size for size, to in pairs]
    return _called(psrt_layers.expand, x, times)


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
    both = _called(psrt_layers.concat, [x_t, hidden_t_prev], 1)
    gates = _fc(both, 4 * size, param_attr=param_attr, bias_attr=bias_attr)
    i, f, o, g = default_main_program().call(psrt_layers.split, gates, 4, 1)
    kept = cell_t_prev * _called(psrt_layers.sigmoid, f + forget_bias)
    cell = kept + _called(psrt_layers.sigmoid, i) * _called(psrt_layers.tanh, g)
    return _called(psrt_layers.sigmoid, o) * _called(psrt_layers.tanh, cell), cell


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
    made = call(gate, for_gates + _called(psrt_layers.matmul, hidden, of_gates))
    update, reset = call(psrt_layers.split, made, 2, 1)
    reset_hidden = reset * hidden
    candidate = call(act, for_candidate + _called(psrt_layers.matmul, reset_hidden, of_candidate))
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


def lod_reset(
    x: Variable, y: Variable | None = None, target_lod: Sequence[int] | None = None
) -> Variable:
    """Put the rows of `x` into lists of other lengths: those of `y`, or that `target_lod` has.

    Lists begin at the numbers of `target_lod`, or of an integer `y` without lists, which begin with
    0; a `target_lod` that does not holds their lengths. Raises `ValueError` without both.
    """
    if y is not None:
        flat = y if y.var.ragged or len(y.var.shape) == 1 else _flat(y)
        return _called(psrt_layers.sequence_regroup, x, flat)
    if target_lod is None:
        raise ValueError("y and target_lod should not be both none.")
    numbers = [int(number) for number in target_lod]
    offsets = numbers if numbers[:1] == [0] else [0, *itertools.accumulate(numbers)]
    return _called(psrt_layers.sequence_regroup, x, None, offsets)


def _flat(x: Variable) -> Variable:
    return _called(psrt_layers.reshape, x, [-1])


def Print(
    input: Variable,
    first_n: int = -1,
    message: str | None = None,
    summarize: int = 20,
    print_tensor_name: bool = True,
    print_tensor_type: bool = True,
    print_tensor_shape: bool = True,
    print_tensor_layout: bool = True,
    print_tensor_lod: bool = True,
    print_phase: str = "both",
) -> Variable:
    """Return a copy of `input`, which each step prints on standard output, as its gradient.

    `first_n` is in how many steps, `summarize` the number of elements shown, -1 for all of both.
    `print_phase` is forward, backward or both; a gradient is that of the result.
    """
    parts = {
        "name": print_tensor_name,
        "message": True,
        "lod": print_tensor_lod,
        "place": True,
        "shape": print_tensor_shape,
        "layout": print_tensor_layout,
        "dtype": print_tensor_type,
    }
    shown = [part for part, is_on in parts.items() if is_on]
    options = (message or "", first_n or -1, summarize, input.name, shown, print_phase.lower())
    return _called(psrt_layers.print_value, input, *options)


def _bias(size: int, attr: Any) -> Variable:
    return create_parameter([size], attr=attr, is_bias=True)


def _called(function: Any, *args: Any) -> Variable:
    made: Variable = default_main_program().call(function, *args)
    return made


__all__ = ["Print", "brelu", "expand_as", "gru_unit", "hard_swish", "label_smooth"]
__all__ += ["lod_reset", "lstm_unit"]
__all__ += ["mse_loss", "prelu", "soft_relu", "squeeze", "stanh", "tanh_shrink"]
