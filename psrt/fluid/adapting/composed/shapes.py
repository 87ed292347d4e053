"""Elements in other shapes and orders, and products of them, made of other layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psrt.core.errors import ProgramError
from psrt.fluid.adapting.composed.calls import called
from psrt.fluid.adapting.targets import with_dimensions
from psrt.fluid.adapting.written_layers import create_parameter
from psrt.fluid.framework import default_main_program
from psrt.fluid.names import Variable
from psrt.graph import layers as psrt_layers


def squeeze(input: Variable, axes: Sequence[int], name: str | None = None) -> Variable:
    """Drop the dimensions `axes`, which have size 1; all such when none is named.

    Lists of ids (n, 1) and their rows have no dimension 1 of that size here: they stay as they are.
    """
    if input.var.ragged and list(axes) == [1] and input.var.shape[1:2] != (1,):
        return called(psrt_layers.assign, input)
    made: Variable = default_main_program().call(
        psrt_layers.squeeze, with_dimensions(input), axes, layer_name=name or ""
    )
    return made


def expand_as(x: Variable, target_tensor: Variable, name: str | None = None) -> Variable:
    """Repeat x until it has the sizes of `target_tensor`; rows of examples stay as they are."""
    pairs = zip(x.shape, target_tensor.shape, strict=True)
    times = [1 if size < 0 or to < 0 else to // size for size, to in pairs]
    return called(psrt_layers.expand, x, times)


def pad(
    x: Variable, paddings: Sequence[int], pad_value: float = 0.0, name: str | None = None
) -> Variable:
    """Put `pad_value` before and behind the elements of each dimension but the examples.

    `paddings` has two numbers for each dimension. Raises `ProgramError` for another number of them,
    and for examples that would be added.
    """
    ends = list(zip(paddings[::2], paddings[1::2], strict=False))
    if len(paddings) != 2 * len(x.shape) or (x.shape[0] < 0 and any(ends[0])):
        raise ProgramError(
            f"layers.pad was given paddings {list(paddings)} for a var of shape {list(x.shape)}.",
            hint="Give two numbers for each dimension, and zeros for that of the examples.",
        )
    for axis, (before, behind) in enumerate(ends):
        x = _padded(x, axis, before, behind, pad_value)
    return x


def pad2d(
    input: Variable,
    paddings: Sequence[int] = (0, 0, 0, 0),
    mode: str = "constant",
    pad_value: float = 0.0,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """Put `pad_value` around images: `paddings` are rows above and below, columns left and right.

    Raises `ProgramError` for other modes than constant.
    """
    if mode != "constant":
        raise ProgramError(f"layers.pad2d was given mode {mode!r}; psrt has 'constant'.")
    around = [0, 0, 0, 0, *paddings]
    if data_format == "NHWC":
        around = [0, 0, *paddings, 0, 0]
    return pad(input, around, pad_value)


def _padded(x: Variable, axis: int, before: int, behind: int, value: float) -> Variable:
    parts = [_like(x, axis, before, value), x, _like(x, axis, behind, value)]
    kept = [part for part in parts if part is not None]
    return x if len(kept) == 1 else called(psrt_layers.concat, kept, axis)


def _like(x: Variable, axis: int, size: int, value: float) -> Variable | None:
    """Return `value` in the shape of `x`, with `size` elements along an axis; None for size 0."""
    if size == 0:
        return None
    shape = [*x.shape[:axis], size, *x.shape[axis + 1 :]]
    dtype = x.var.type.dtype
    if shape[0] < 0:
        return called(psrt_layers.fill_constant_batch_size_like, x, shape, dtype, value)
    return called(psrt_layers.fill_constant, shape, dtype, value)


def reverse(x: Variable, axis: int | Sequence[int]) -> Variable:
    """Elements in the opposite order along `axis`, any dimension but the examples."""
    for each in [axis] if isinstance(axis, int) else axis:
        at = each % len(x.shape)
        parts = default_main_program().call(psrt_layers.split, x, x.shape[at], at)
        x = called(psrt_layers.concat, list(reversed(parts)), at)
    return x


def argsort(
    input: Variable, axis: int = -1, descending: bool = False, name: str | None = None
) -> tuple[Variable, Variable]:
    """Elements in order along the last dimension, and where each was, int64; equal ones as before.

    Raises `ProgramError` for another `axis`.
    """
    last = len(input.shape) - 1
    if axis % len(input.shape) != last:
        raise ProgramError(f"layers.argsort was given axis {axis}; psrt sorts along the last one.")
    found = input if descending else called(psrt_layers.scale, input, -1.0)
    values, places = default_main_program().call(psrt_layers.topk, found, input.shape[last])
    return values if descending else called(psrt_layers.scale, values, -1.0), places


def unbind(input: Variable, axis: int = 0) -> list[Variable]:
    """Return the parts of `input` along `axis`, without that dimension."""
    made: list[Variable] = default_main_program().call(psrt_layers.unstack, input, axis)
    return made


def multiplex(inputs: Sequence[Variable], index: Variable) -> Variable:
    """Row i of var number index[i]: `inputs` (rows, d), `index` int (rows, 1)."""
    chosen = called(psrt_layers.one_hot, index, len(inputs))
    weights = called(psrt_layers.unsqueeze, chosen, [2])
    rows = called(psrt_layers.stack, list(inputs), 1)
    return called(psrt_layers.reduce_sum, rows * weights, 1)


def bilinear_tensor_product(
    x: Variable,
    y: Variable,
    size: int,
    act: str | None = None,
    name: str | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
) -> Variable:
    """Products x · Wᵢ · yᵀ + b, i < size: (rows, m) and (rows, n) → (rows, size)."""
    m, n = x.shape[1], y.shape[1]
    weight = create_parameter([size, m, n], attr=param_attr)
    by_x = called(psrt_layers.transpose, weight, [1, 0, 2])
    products = called(psrt_layers.matmul, x, called(psrt_layers.reshape, by_x, [m, size * n]))
    products = called(psrt_layers.reshape, products, [-1, size, n])
    found = called(psrt_layers.reduce_sum, products * called(psrt_layers.unsqueeze, y, [1]), 2)
    if bias_attr is not False:
        found = found + create_parameter([1, size], attr=bias_attr, is_bias=True)
    return found if act is None else called(getattr(psrt_layers, act), found)


def clip_by_norm(x: Variable, max_norm: float, name: str | None = None) -> Variable:
    """x, scaled to the Euclidean norm `max_norm` of all its elements where theirs is above."""
    norm = called(psrt_layers.sqrt, called(psrt_layers.reduce_sum, called(psrt_layers.square, x)))
    limit = called(psrt_layers.fill_constant, [1], "float32", max_norm)
    return x * (limit / called(psrt_layers.elementwise_max, norm, limit))


__all__ = [
    "argsort",
    "bilinear_tensor_product",
    "clip_by_norm",
    "expand_as",
    "multiplex",
    "pad",
    "pad2d",
]
__all__ += ["reverse", "squeeze", "unbind"]
