"""Recurrent layers over the elements of each example, as one op each, and steps that users write.

`input` (n, gates · size) holds what the elements add to the gates, `weight` what the state before
does. attrs: is_reverse, which begins with the last element; gate_activation, candidate_activation
and, of an LSTM, cell_activation: names of ACTIVATIONS. Initial states are (rows, size), else zeros.
"""

from __future__ import annotations

from psrt.graph.ops.sequence import need_ragged
from psrt.graph.ops.table import ROWS, OpCall, TensorType, Types, define

ACTIVATIONS = ("sigmoid", "tanh", "relu", "identity")


def _size(call: OpCall, gates: int) -> int:
    """The size of the state; requires floats of `gates` parts and a weight that fits."""
    x, weight = need_ragged(call, "input"), call.need_ndim("weight", 2)
    size = weight.shape[0]
    fits = x.is_float and x.shape == (ROWS, gates * size)
    call.need(fits, f"argument input is {x}, not ragged floats of {gates} × {size} columns")
    fits = weight.shape == (size, gates * size)
    call.need(fits, f"weight of shape {weight.shape} is not that of {gates} gates of {size}")
    for slot in ("h_0", "c_0"):
        for found in call.many(slot):
            fits = found.shape == (ROWS, size) and not found.ragged
            call.need(fits, f"argument {slot} is {found}, not one row of {size} for each example")
    for name in ("gate_activation", "candidate_activation", "cell_activation"):
        act = call.attrs.get(name, "tanh")
        call.need(act in ACTIVATIONS, f"argument {name} is {act!r}, not one of {ACTIVATIONS}")
    return size


@define("lstm", inputs="input weight bias h_0? c_0?", outputs="out gates", ragged="input")
def lstm(call: OpCall) -> Types:
    """Hidden states and cells side by side: ragged (n, 4 · size) → (n, 2 · size).

    Gates, in the order of columns: candidate, input, forget, output. `bias` has 4 · size numbers,
    and 3 · size more with peepholes: weights of the cell in the gates input, forget, output.
    """
    size, bias = _size(call, 4), call.one("bias")
    call.need(
        bias.shape in ((4 * size,), (7 * size,)),
        f"bias of shape {bias.shape} does not fit a state of {size}",
    )
    x = call.one("input")
    gates = TensorType((ROWS, 4 * size), x.dtype, ragged=True)
    return {"out": x.reshaped((ROWS, 2 * size)), "gates": gates}


@define("gru", inputs="input weight bias h_0?", outputs="out gates", ragged="input")
def gru(call: OpCall) -> Types:
    """Hidden states: ragged (n, 3 · size) → (n, size). attrs: origin_mode.

    Gates: update, reset, candidate. The memory of `weight` holds (size, 2 · size) of the first two,
    then (size, size) of the candidate. New state: (1 − update) · old + update · candidate, or with
    origin_mode the opposite.
    """
    size, bias = _size(call, 3), call.one("bias")
    fits = bias.shape == (3 * size,)
    call.need(fits, f"bias of shape {bias.shape} does not fit a state of {size}")
    x = call.one("input")
    return {"out": x.reshaped((ROWS, size)), "gates": x}


@define("recurrence", inputs="x*", outputs="out", ragged="x")
def recurrence(call: OpCall) -> Types:
    """A step that is a program of its own, once for each element of each example, in order.

    `x` are the vars that the step reads: `elements` ragged ones, first values of states, `statics`
    that belong to examples, and others. attrs: body, the text of the step's program; reads, the
    names there of all in x; states, their names there, those with a first value in x at first;
    firsts, numbers that the other states begin with; following, the names of the states after a
    step; outputs; width, the columns of outputs and states, side by side in the result; is_test.
    """
    xs, count = call.many("x"), call.attrs["elements"]
    call.need(0 < count <= len(xs), "a recurrence reads the elements of a ragged var at least")
    for number, x in enumerate(xs):
        needed = "the elements of examples" if number < count else "no ragged var"
        call.need(x.ragged == (number < count), f"argument x has {x}, where it takes {needed}")
    return {"out": TensorType((ROWS, call.attrs["width"]), "float32", ragged=True)}
