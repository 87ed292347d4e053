"""Layers over the elements of each example of a ragged var."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from psrt.graph.builder import Layer, Vars
from psrt.graph.initializer import Constant, Xavier
from psrt.graph.layers.elementwise import activate
from psrt.graph.ops import ANY
from psrt.graph.param import Param
from psrt.graph.program import Var


def sequence_pool(input: Var, pool_type: str = "sum") -> Var:
    """Pool the rows of each example: ragged (n, width) → (rows, width); an empty one gives 0.

    `pool_type` is sum, average, sqrt (sum / √count), max, first or last.
    """
    return Layer("sequence_pool").op("sequence_pool", {"x": input}, pool=pool_type)


def sequence_first_step(input: Var) -> Var:
    """First row of each example, zeros for an empty one: ragged (n, width) → (rows, width)."""
    return Layer("sequence_first_step").op("sequence_pool", {"x": input}, pool="first")


def sequence_last_step(input: Var) -> Var:
    """Last row of each example, zeros for an empty one: ragged (n, width) → (rows, width)."""
    return Layer("sequence_last_step").op("sequence_pool", {"x": input}, pool="last")


def sequence_softmax(input: Var) -> Var:
    """Softmax over the elements of each example: ragged floats (n,) or (n, 1)."""
    return Layer("sequence_softmax").op("sequence_softmax", {"input": input})


def sequence_expand(x: Var, y: Var) -> Var:
    """Repeat row i of `x` (rows, …) per element of example i of ragged `y`: → ragged (n, …)."""
    return Layer("sequence_expand").op("sequence_expand", {"x": x, "y": y})


def sequence_concat(input: Sequence[Var]) -> Var:
    """Join ragged vars of one type example by example: elements of the first, of the second, …"""
    return Layer("sequence_concat").op("sequence_concat", {"input": input})


def sequence_reverse(x: Var) -> Var:
    """Reverse the elements of each example of the ragged `x`."""
    return Layer("sequence_reverse").op("sequence_reverse", {"x": x})


def sequence_slice(input: Var, offset: Var, length: Var) -> Var:
    """Take `length` elements of each example, from its element `offset` on; both int64 (rows, 1).

    A slice beyond its example raises `ProgramError` in the step.
    """
    layer = Layer("sequence_slice")
    return layer.op("sequence_slice", {"input": input, "offset": offset, "length": length})


def sequence_pad(x: Var, pad_value: float, maxlen: int | None = None) -> tuple[Var, Var]:
    """Pad examples: ragged (n, …) → (rows, maxlen, …) and lengths, int64 (rows, 1).

    Shorter examples end in `pad_value`; longer ones are cut, and their length is `maxlen`, which
    is that of the longest example of the batch by default.
    """
    layer, maxlen = Layer("sequence_pad"), ANY if maxlen is None else maxlen
    made = layer.ops("sequence_pad", {"x": x}, pad_value=pad_value, maxlen=maxlen)
    return made["out"], made["length"]


def sequence_unpad(x: Var, length: Var) -> Var:
    """Take the first `length` elements of each example: (rows, maxlen, …) → ragged (n, …).

    `length` is int64 (rows, 1); more than maxlen raises `ProgramError` in the step.
    """
    return Layer("sequence_unpad").op("sequence_unpad", {"x": x, "length": length})


def sequence_mask(x: Var, maxlen: int | None = None, dtype: str = "int64") -> Var:
    """Mask of lengths, int64 (rows, 1) → (rows, maxlen): 1 at elements of an example, else 0.

    `maxlen` is the greatest length of the batch by default.
    """
    maxlen = ANY if maxlen is None else maxlen
    return Layer("sequence_mask").op("sequence_mask", {"x": x}, maxlen=maxlen, dtype=dtype)


def sequence_rows(x: Var) -> Var:
    """Plain rows of a ragged `x` of one element an example: ragged (n, …) → (rows, …).

    A batch with an example of no or several elements raises `DataError` in the step.
    """
    return Layer("sequence_rows").op("sequence_rows", {"x": x})


def sequence_conv(
    input: Var,
    num_filters: int,
    filter_size: int = 3,
    padding_start: int | None = None,
    bias: Param | str | Literal[False] | None = None,
    param: Param | str | None = None,
    act: str | None = None,
) -> Var:
    """Convolution over the elements of each example: ragged (n, width) → ragged (n, filters).

    A filter reads `filter_size` elements from `padding_start` places behind each one on, by default
    −⌊filter_size / 2⌋; elements outside the example count as zeros. The weight is (filter_size ·
    width, num_filters), Xavier; `bias=False` omits the bias, which otherwise starts at 0.
    """
    layer = Layer("sequence_conv")
    filters = layer.whole("num_filters", num_filters, least=1)
    size = layer.whole("filter_size", filter_size, least=1)
    start = -(size // 2) if padding_start is None else layer.whole("padding_start", padding_start)
    context = layer.op(
        "sequence_context", {"input": input}, start=start, length=size, pad_value=0.0
    )
    weight = layer.parameter("w_0", (context.shape[1], filters), param, Xavier())
    biases = [] if bias is False else [layer.parameter("b_0", (filters,), bias, Constant(0.0))]
    out = layer.op("fc", {"x": [context], "w": [weight], "bias": biases}, activation="")
    return activate(layer, out, act)


def sequence_enumerate(input: Var, win_size: int, pad_value: int = 0) -> Var:
    """Windows of ids: each id and the next ones of its example, ragged int64 (n,) → (n, win_size).

    `pad_value` takes the place of ids beyond the example.
    """
    layer = Layer("sequence_enumerate")
    length = layer.whole("win_size", win_size, least=1)
    pad_value = layer.whole("pad_value", pad_value)
    return layer.op(
        "sequence_context", {"input": input}, start=0, length=length, pad_value=pad_value
    )


def sequence_expand_as(x: Var, y: Var) -> Var:
    """Repeat row i of `x` (rows, …) per element of example i of ragged `y`: → ragged (n, …)."""
    return Layer("sequence_expand_as").op("sequence_expand", {"x": x, "y": y})


def sequence_regroup(x: Var, y: Var | None = None, offsets: Sequence[int] = ()) -> Var:
    """Put the rows of `x` into lists of other lengths, → ragged (n, …): those of ragged `y`.

    Lists begin at `offsets`, or at those in `y`, int64 (lists + 1,). Rows that they do not hold
    raise `DataError` in the step.
    """
    layer = Layer("sequence_regroup")
    begins = layer.wholes("offsets", offsets) if offsets else ()
    inputs: dict[str, Vars] = {"x": x} if y is None else {"x": x, "y": y}
    return layer.op("sequence_regroup", inputs, offsets=begins)


def sequence_reshape(input: Var, new_dim: int) -> Var:
    """Put each example's numbers into rows of `new_dim`: ragged (n, width) → ragged (m, new_dim).

    An example whose numbers do not fill its rows raises `DataError` in the step.
    """
    layer = Layer("sequence_reshape")
    width = layer.whole("new_dim", new_dim, least=1)
    return layer.op("sequence_reshape", {"input": input}, width=width)


def sequence_nest(input: Var, lengths: Var) -> Var:
    """Put the rows of `input` (n, …) into lists of `lengths`, int64 (m,): → ragged (n, …).

    Where both are ragged, `lengths` has those of the shorter lists of each list of `input`. Lengths
    that do not add up end the step with `DataError`.
    """
    return Layer("sequence_nest").op("sequence_nest", {"input": input, "lengths": lengths})


def sequence_lengths(x: Var) -> Var:
    """Number of elements of each list: ragged (n, …) → int64 (rows,)."""
    return Layer("sequence_lengths").op("sequence_lengths", {"x": x})


def sequence_repeat(x: Var, y: Var) -> Var:
    """Repeat list i of the ragged `x` for every element of list i of the ragged `y`."""
    return Layer("sequence_repeat").op("sequence_repeat", {"x": x, "y": y})
