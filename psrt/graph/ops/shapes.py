"""Ops that move or rename elements and compute nothing.

Dimension 0 of a batch counts examples: they stay apart and in order. Vars without rows, such as
parameters, may be rearranged along any dimension.
"""

from __future__ import annotations

import math

from psrt.core.types import Shape
from psrt.graph.ops.table import ANY, ROWS, OpCall, Types, define


@define("concat", inputs="x*", ragged="x")
def concat(call: OpCall) -> Types:
    """attrs: axis, 1 or more where there are rows: examples stay apart."""
    xs, axis = call.many("x"), call.attrs["axis"]
    first = xs[0].shape
    lowest = 1 if first[:1] == (ROWS,) else 0
    fits = lowest <= axis < len(first)
    call.need(fits, f"argument axis {axis} is not between {lowest} and {len(first) - 1}")
    for x in xs:
        same_kind = (x.dtype, x.ragged) == (xs[0].dtype, xs[0].ragged)
        fits = same_kind and without(x.shape, axis) == without(first, axis)
        call.need(fits, f"argument input has {xs[0]} and {x}, which differ outside axis {axis}")
        call.need(x.shape[axis] != ROWS, f"argument input has {x}, of no known size at axis {axis}")
    sizes = [x.shape[axis] for x in xs]
    width = ANY if ANY in sizes else sum(sizes)
    return {"out": xs[0].reshaped((*first[:axis], width, *first[axis + 1 :]))}


def without(shape: Shape, axis: int) -> Shape:
    return shape[:axis] + shape[axis + 1 :]


@define("stack", inputs="x*", ragged="x")
def stack(call: OpCall) -> Types:
    """attrs: axis, the position of the new dimension in the result."""
    xs, axis = call.many("x"), call.attrs["axis"]
    first = xs[0].shape
    lowest = 1 if first[:1] == (ROWS,) else 0
    fits = lowest <= axis <= len(first)
    call.need(fits, f"argument axis {axis} is not between {lowest} and {len(first)}")
    for x in xs:
        call.need(x == xs[0], f"argument x has parts of different types: {xs[0]} and {x}")
    return {"out": xs[0].reshaped((*first[:axis], len(xs), *first[axis:]))}


@define("slice", inputs="input", ragged="input")
def slice_of(call: OpCall) -> Types:
    """attrs: axes, starts, ends, counted from the front and within the sizes that are known.

    Where a batch has fewer examples than ends has, out has those there are.
    """
    x, shape = call.one("input"), list(call.one("input").shape)
    for axis, start, end in zip(
        call.attrs["axes"], call.attrs["starts"], call.attrs["ends"], strict=True
    ):
        fits = 0 <= axis < len(shape) and not (x.ragged and axis == 0)
        call.need(fits, f"argument axes has {axis}, where argument input {x} has no known size")
        fits = 0 <= start < end and (end <= shape[axis] or shape[axis] < 0)
        call.need(fits, f"arguments starts {start} and ends {end} leave nothing of {x}")
        shape[axis] = end - start if shape[axis] != ROWS else ROWS
    return {"out": x.reshaped(tuple(shape))}


@define("slice_between", inputs="input start end", ragged="input")
def slice_between(call: OpCall) -> Types:
    """Elements `start` to `end` (excluded) of one dimension, with Python's indices; attrs: axis."""
    x, axis = call.one("input"), call.attrs["axis"]
    lowest = 1 if x.shape[:1] == (ROWS,) else 0
    fits = lowest <= axis < len(x.shape)
    call.need(fits, f"argument axis {axis} is not between {lowest} and {len(x.shape) - 1}")
    for slot in ("start", "end"):
        at = call.one(slot)
        fits = at.dtype == "int64" and not at.ragged and at.shape in ((), (1,))
        call.need(fits, f"argument {slot} is {at}, not one int64")
    return {"out": x.reshaped((*x.shape[:axis], ANY, *x.shape[axis + 1 :]))}


@define("reshape", inputs="x", ragged="x")
def reshape(call: OpCall) -> Types:
    """attrs: shape. The first size of a batch is ROWS: kept, merged or split at run time.

    A size that is ANY in the result is that of the same dimension of x, or what is left of x.
    """
    x, shape = call.one("x"), call.attrs["shape"]
    has_rows = ROWS in shape[:1]
    call.need(has_rows == (ROWS in x.shape[:1]), f"argument shape {shape} or {x} has no rows")
    open_sizes = ROWS in shape[1:] or ROWS in x.shape[1:]
    call.need(not open_sizes, f"argument shape {shape} or {x} leaves two dimensions open")
    if ANY in shape or ANY in x.shape:
        return {"out": x.reshaped(shape)}
    before, after = math.prod(x.shape), math.prod(shape)
    fits = before == after
    if has_rows and not x.ragged:
        fits = after != 0 and (before % after == 0 or after % before == 0)
    call.need(fits, f"argument shape {shape} does not fit argument x of shape {x.shape}")
    return {"out": x.reshaped(shape)}


@define("open_sizes", inputs="x")
def open_sizes(call: OpCall) -> Types:
    """x behind dimensions of 1, with fewer sizes declared. attrs: shape, that of the result.

    Its sizes are those of x, or ANY; the first one may be ROWS.
    """
    x, shape = call.one("x"), call.attrs["shape"]
    call.need(len(x.shape) <= len(shape), f"argument shape {shape} has fewer dimensions than {x}")
    own = (1,) * (len(shape) - len(x.shape)) + x.shape
    pairs = [*zip(own, shape, strict=True)]
    fits = all(size in (known, ANY) for known, size in pairs[1:])
    fits = fits and all(size in (known, ANY, ROWS) for known, size in pairs[:1])
    call.need(fits, f"argument shape {shape} is not that of {x} with some sizes open")
    return {"out": x.reshaped(shape)}


@define("group_rows", inputs="x like")
def group_rows(call: OpCall) -> Types:
    """Rows of x in groups of equal sizes, as many as like has rows."""
    x, like = call.one("x"), call.one("like")
    has_rows = x.shape[:1] == like.shape[:1] == (ROWS,)
    call.need(has_rows, f"argument x is {x} and argument like is {like}, not both have rows")
    return {"out": x.reshaped((ROWS, ANY, *x.shape[1:]))}


@define("transpose", inputs="x", ragged="x")
def transpose(call: OpCall) -> Types:
    """attrs: perm, the source of each dimension of the result."""
    x, perm = call.one("x"), call.attrs["perm"]
    fits = sorted(perm) == list(range(len(x.shape)))
    call.need(fits, f"argument perm {perm} does not order the dimensions of argument x, {x}")
    stays = x.shape[:1] != (ROWS,) or perm[0] == 0
    call.need(stays, f"argument perm {perm} moves dimension 0, the examples of argument x, {x}")
    return {"out": x.reshaped(tuple(x.shape[axis] for axis in perm))}


@define("expand", inputs="x", ragged="x")
def expand(call: OpCall) -> Types:
    """attrs: expand_times, the number of repetitions of each dimension."""
    x, times = call.one("x"), call.attrs["expand_times"]
    fits = len(times) == len(x.shape) and all(count >= 1 for count in times)
    call.need(fits, f"argument expand_times {times} does not fit argument x, {x}")
    fits = all(count == 1 for size, count in zip(x.shape, times, strict=True) if size == ROWS)
    call.need(fits, f"argument expand_times {times} would repeat the examples of argument x, {x}")
    shape = [size if size < 0 else size * n for size, n in zip(x.shape, times, strict=True)]
    return {"out": x.reshaped(tuple(shape))}
