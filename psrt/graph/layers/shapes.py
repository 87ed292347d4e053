"""Layers that rearrange.

Shapes and axes count the batch: dimension 0 of a batch holds its examples, which stay apart and in
order. Negative axes count from the end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from psrt.graph.arguments import are_several
from psrt.graph.builder import Layer
from psrt.graph.ops import ANY, ROWS
from psrt.graph.program import Var


def concat(input: Sequence[Var], axis: int = 1) -> Var:
    """Join vars along `axis`, which is not that of the examples; all of them ragged, or none."""
    layer = Layer("concat")
    xs = layer.checked("input", input)
    return layer.op("concat", {"x": xs}, axis=from_front(layer, xs, axis))


def stack(x: Sequence[Var], axis: int = 1) -> Var:
    """Join vars of one shape along a new dimension, at `axis` of the result."""
    layer = Layer("stack")
    xs = layer.checked("x", x)
    return layer.op("stack", {"x": xs}, axis=from_front(layer, xs, axis, more=1))


def unstack(x: Var, axis: int = 1) -> list[Var]:
    """Split dimension `axis` into vars without it, one per index: the inverse of `stack`."""
    layer = Layer("unstack")
    at = from_front(layer, layer.checked("x", x), axis)
    shape = x.shape[:at] + x.shape[at + 1 :]
    parts = _parts(layer, x, at, [1] * _known_size(layer, "x", x, at))
    return [layer.op("reshape", {"x": part}, shape=shape) for part in parts]


def split(input: Var, num_or_sections: int | Sequence[int], dim: int = -1) -> list[Var]:
    """Cut dimension `dim` into `num_or_sections` equal parts, or into parts of these sizes.

    One size may be -1, the rest.
    """
    layer = Layer("split")
    at = from_front(layer, layer.checked("input", input), dim)
    size = _known_size(layer, "input", input, at)
    if isinstance(num_or_sections, Iterable):
        parts = layer.wholes("num_or_sections", num_or_sections)
        known = sum(part for part in parts if part != -1)
        sizes = [size - known if part == -1 else part for part in parts]
    else:
        count = layer.whole("num_or_sections", num_or_sections)
        sizes = [size // max(count, 1)] * count
    if sum(sizes) != size or min(sizes, default=0) < 1:
        raise layer.error(
            f"argument num_or_sections {num_or_sections} does not cut dimension {at} of argument "
            f"input of shape {input.shape} without a rest"
        )
    return _parts(layer, input, at, sizes)


def slice(
    input: Var, axes: Sequence[int], starts: Sequence[int | Var], ends: Sequence[int | Var]
) -> Var:
    """Take elements `starts` up to, not including, `ends` of the dimensions `axes`.

    Negative positions count from the end and too large ends are cut, as in Python. Examples, in
    dimension 0 of a batch or of a replica's share of it, are counted from the front alone. A
    position is a number or a var, one int64; the size of its dimension then differs from step to
    step, as it does between positions from the end of an open size.
    """
    layer = Layer("slice")
    layer.checked("input", input)
    found = [from_front(layer, (input,), axis) for axis in layer.wholes("axes", axes)]
    low, high = _positions(layer, "starts", starts), _positions(layer, "ends", ends)
    if not len(found) == len(low) == len(high):
        raise layer.error(f"arguments axes {axes}, starts {starts}, ends {ends} differ in length")
    if any(_is_between(input, *each) for each in zip(found, low, high, strict=True)):
        return _sliced_between(layer, input, found, low, high)
    first, last = layer.wholes("starts", low), layer.wholes("ends", high)
    sizes = [_sliced_size(layer, input, *each) for each in zip(found, first, last, strict=True)]
    return layer.op(
        "slice",
        {"input": input},
        axes=tuple(found),
        starts=tuple(_position(at, size) for at, size in zip(first, sizes, strict=True)),
        ends=tuple(_position(at, size) for at, size in zip(last, sizes, strict=True)),
    )


def reshape(x: Var, shape: Sequence[int]) -> Var:
    """Give the elements another shape; the first size of a batch is -1, or 0 to keep it.

    Another 0 keeps a size, and one other -1 is computed. A ragged var keeps its elements apart:
    (-1,) and (-1, 1) are such shapes of each other.
    """
    layer = Layer("reshape")
    layer.checked("x", x)
    given = layer.wholes("shape", shape)
    sizes = [x.shape[i] if size == 0 and i < len(x.shape) else size for i, size in enumerate(given)]
    fixed = 1 if ROWS in x.shape[:1] and sizes[:1] == [ROWS] else 0
    if ANY in x.shape:
        sizes[fixed:] = [ANY if size == ROWS else size for size in sizes[fixed:]]
    if ROWS in sizes[fixed:]:
        others = math.prod(size for size in sizes[fixed:] if size != ROWS)
        sizes[sizes.index(ROWS, fixed)] = math.prod(x.shape[fixed:]) // max(others, 1)
    return layer.op("reshape", {"x": x}, shape=tuple(sizes))


def group_rows(x: Var, like: Var) -> Var:
    """Put rows into groups of equal sizes, one for each example of `like`: (groups, rows, …)."""
    return Layer("group_rows").op("group_rows", {"x": x, "like": like})


def flatten(x: Var, axis: int = 1) -> Var:
    """Flatten to two dimensions, those before `axis` and the rest; `axis` is 1 for a batch."""
    layer = Layer("flatten")
    layer.checked("x", x)
    axis = layer.whole("axis", axis)
    if not 0 <= axis <= len(x.shape) or (ROWS in x.shape[:1] and axis != 1):
        raise layer.error(f"argument axis {axis} does not leave the examples of x {x.type} apart")
    inner = ANY if ANY in x.shape[axis:] else math.prod(x.shape[axis:])
    shape = (math.prod(x.shape[:axis]), inner)
    return layer.op("reshape", {"x": x}, shape=shape)


def squeeze(input: Var, axes: Sequence[int] = ()) -> Var:
    """Drop the dimensions `axes`, which have size 1; all such when none is named."""
    layer = Layer("squeeze")
    layer.checked("input", input)
    found = {from_front(layer, (input,), axis) for axis in layer.wholes("axes", axes)}
    found = found or {i for i, size in enumerate(input.shape) if size == 1}
    for axis in found:
        if not 0 <= axis < len(input.shape) or input.shape[axis] != 1:
            raise layer.error(f"argument axes has {axis}, which is not of size 1 in {input.type}")
    shape = tuple(size for i, size in enumerate(input.shape) if i not in found)
    return layer.op("reshape", {"x": input}, shape=shape)


def unsqueeze(input: Var, axes: Sequence[int]) -> Var:
    """Insert dimensions of size 1 at `axes`, each counted after the insertions before it."""
    layer = Layer("unsqueeze")
    layer.checked("input", input)
    shape = list(input.shape)
    for axis in layer.wholes("axes", axes):
        at = axis + len(shape) + 1 if axis < 0 else axis
        if not 0 <= at <= len(shape):
            raise layer.error(f"argument axes has {axis}, beyond the dimensions of {input.type}")
        shape.insert(at, 1)
    return layer.op("reshape", {"x": input}, shape=tuple(shape))


def transpose(x: Var, perm: Sequence[int]) -> Var:
    """Reorder: dimension i of the result is `perm[i]` of `x`; that of the examples stays first."""
    layer = Layer("transpose")
    layer.checked("x", x)
    return layer.op("transpose", {"x": x}, perm=layer.wholes("perm", perm))


def expand(x: Var, expand_times: Sequence[int]) -> Var:
    """Repeat each dimension `expand_times` times: 1 for that of the examples."""
    layer = Layer("expand")
    layer.checked("x", x)
    times = layer.wholes("expand_times", expand_times)
    return layer.op("expand", {"x": x}, expand_times=times)


def from_front(layer: Layer, xs: Sequence[Var], axis: int, more: int = 0) -> int:
    """Return `axis` counted from the front; `more` is the number of dimensions a layer adds."""
    if not xs:
        raise layer.error("there is no var to work on")
    axis = layer.whole("axis", axis)
    return axis + len(xs[0].shape) + more if axis < 0 else axis


def _known_size(layer: Layer, argument: str, x: Var, axis: int) -> int:
    if not 0 <= axis < len(x.shape) or x.shape[axis] < 0:
        raise layer.error(f"argument {argument} is {x.type}, of no known size at axis {axis}")
    return x.shape[axis]


def _sliced_size(layer: Layer, x: Var, axis: int, start: int, end: int) -> int:
    """The size of a dimension to slice; `end` where it is open and no position counts from it."""
    is_open = 0 <= axis < len(x.shape) and x.shape[axis] < 0 and start >= 0 and end >= 0
    return end if is_open else _known_size(layer, "input", x, axis)


def _sliced_between(
    layer: Layer,
    input: Var,
    axes: Sequence[int],
    starts: Sequence[int | Var],
    ends: Sequence[int | Var],
) -> Var:
    """Slice dimension by dimension, as a position of a step is one number."""
    for axis, *limits in zip(axes, starts, ends, strict=True):
        if _is_between(input, axis, *limits):
            start, end = (_as_var(layer, at) for at in limits)
            given: dict[str, Var | Sequence[Var]] = {"input": input, "start": start, "end": end}
            input = layer.op("slice_between", given, axis=axis)
        else:
            input = slice(input, [axis], *([at] for at in limits))
    return input


def _is_between(x: Var, axis: int, start: int | Var, end: int | Var) -> bool:
    """Return whether the positions in a dimension are known in a step alone."""
    if isinstance(start, Var) or isinstance(end, Var):
        return True
    return 0 < axis < len(x.shape) and x.shape[axis] < 0 and min(start, end) < 0


def _positions(layer: Layer, argument: str, given: Sequence[int | Var]) -> list[int | Var]:
    if not are_several(given):
        layer.wholes(argument, given)  # raises
    return [at if isinstance(at, Var) else layer.whole(argument, at) for at in given]


def _as_var(layer: Layer, at: int | Var) -> Var:
    if isinstance(at, Var):
        return at
    return layer.op("fill_constant", {}, shape=(1,), dtype="int64", value=at)


def _position(at: int, size: int) -> int:
    return max(0, at + size) if at < 0 else min(at, size)


def _parts(layer: Layer, x: Var, axis: int, sizes: Sequence[int]) -> list[Var]:
    """Parts of these sizes, one after another along `axis`."""
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    return [
        layer.op("slice", {"input": x}, axes=(axis,), starts=(end - size,), ends=(end,))
        for size, end in zip(sizes, ends, strict=True)
    ]
