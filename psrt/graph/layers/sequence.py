"""Layers over the elements of each example of a ragged var."""

from __future__ import annotations

from collections.abc import Sequence

from psrt.graph.builder import Layer
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


def sequence_pad(x: Var, pad_value: float, maxlen: int) -> tuple[Var, Var]:
    """Pad examples: ragged (n, …) → (rows, maxlen, …) and lengths, int64 (rows, 1).

    Shorter examples end in `pad_value`; longer ones are cut, and their length is `maxlen`.
    """
    layer = Layer("sequence_pad")
    made = layer.ops("sequence_pad", {"x": x}, pad_value=pad_value, maxlen=maxlen)
    return made["out"], made["length"]


def sequence_unpad(x: Var, length: Var) -> Var:
    """Take the first `length` elements of each example: (rows, maxlen, …) → ragged (n, …).

    `length` is int64 (rows, 1); more than maxlen raises `ProgramError` in the step.
    """
    return Layer("sequence_unpad").op("sequence_unpad", {"x": x, "length": length})


def sequence_mask(x: Var, maxlen: int, dtype: str = "int64") -> Var:
    """Mask of lengths, int64 (rows, 1) → (rows, maxlen): 1 at elements of an example, else 0."""
    return Layer("sequence_mask").op("sequence_mask", {"x": x}, maxlen=maxlen, dtype=dtype)
