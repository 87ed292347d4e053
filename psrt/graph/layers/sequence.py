"""Layers over the elements of each example of a ragged var."""

from __future__ import annotations

from collections.abc import Sequence

from psrt.graph.builder import Layer
from psrt.graph.program import Var


def sequence_pool(input: Var, pool_type: str = "sum") -> Var:
    """Pool the rows of each example: ragged (n, width) → (rows, width); an empty one gives 0.

    `pool_type` is sum, average, sqrt (the sum over the root of the count), max, first or last.
    """
    return Layer("sequence_pool").op("sequence_pool", {"x": input}, pool=pool_type)


def sequence_first_step(input: Var) -> Var:
    """The first row of each example, zeros for an empty one."""
    return Layer("sequence_first_step").op("sequence_pool", {"x": input}, pool="first")


def sequence_last_step(input: Var) -> Var:
    """The last row of each example, zeros for an empty one."""
    return Layer("sequence_last_step").op("sequence_pool", {"x": input}, pool="last")


def sequence_softmax(input: Var) -> Var:
    """Softmax over the elements of each example: ragged floats (n,) or (n, 1)."""
    return Layer("sequence_softmax").op("sequence_softmax", {"input": input})


def sequence_expand(x: Var, y: Var) -> Var:
    """Row i of `x` (rows, …) for every element of example i of the ragged `y`: → ragged (n, …)."""
    return Layer("sequence_expand").op("sequence_expand", {"x": x, "y": y})


def sequence_concat(input: Sequence[Var]) -> Var:
    """Join ragged vars example by example: the elements of the first, then of the second, …"""
    return Layer("sequence_concat").op("sequence_concat", {"input": input})


def sequence_reverse(x: Var) -> Var:
    """Each example of the ragged `x` backwards."""
    return Layer("sequence_reverse").op("sequence_reverse", {"x": x})


def sequence_slice(input: Var, offset: Var, length: Var) -> Var:
    """`length` elements of each example, from its element `offset` on; both int64 (rows, 1).

    A slice that does not lie within its example fails the step.
    """
    layer = Layer("sequence_slice")
    return layer.op("sequence_slice", {"input": input, "offset": offset, "length": length})


def sequence_pad(x: Var, pad_value: float, maxlen: int) -> tuple[Var, Var]:
    """ragged (n, …) → (rows, maxlen, …) and its lengths, int64 (rows, 1).

    Shorter examples end in `pad_value`; longer ones are cut, and their length is `maxlen`.
    """
    layer = Layer("sequence_pad")
    made = layer.ops("sequence_pad", {"x": x}, pad_value=pad_value, maxlen=maxlen)
    return made["out"], made["length"]


def sequence_unpad(x: Var, length: Var) -> Var:
    """(rows, maxlen, …) → ragged (n, …): the first `length` elements of each example.

    `length` is int64 (rows, 1); more than maxlen fails the step.
    """
    return Layer("sequence_unpad").op("sequence_unpad", {"x": x, "length": length})


def sequence_mask(x: Var, maxlen: int, dtype: str = "int64") -> Var:
    """Lengths int64 (rows, 1) → (rows, maxlen): 1 at the elements of an example, 0 behind them."""
    return Layer("sequence_mask").op("sequence_mask", {"x": x}, maxlen=maxlen, dtype=dtype)
