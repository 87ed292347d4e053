"""Other forms of ragged vars: padded and back, masks of lengths, neighbours joined, rows of another
width, plain rows."""

from __future__ import annotations

import numpy as np

from psrt.core.errors import DataError
from psrt.core.types import I64, Array
from psrt.executor.compute.lengths import check_one_each
from psrt.executor.compute.registry import Bound, Step, computes
from psrt.executor.compute.sequence import (
    check_slices,
    new_positions,
    offsets_from,
    offsets_of,
    take,
)
from psrt.executor.memory import Cell
from psrt.graph.ops import ANY
from psrt.kernels.ops import sequence
from psrt.kernels.tables import rows


class _Padding:
    """Pads examples to as many elements each, and back; owns the memory for both."""

    def __init__(self) -> None:
        self._positions, self._flags = new_positions(), Cell("flags", np.bool_)

    def pad(self, x: Array, offsets: I64, value: float, out: Array) -> None:
        """`out` (examples, width, …) = the elements (n, …) of each example, followed by `value`."""
        if len(x) == 0:
            out.fill(value)
            return
        flat = out.reshape(-1, *x.shape[1:])
        sources, is_hole = (
            self._positions.reserve(flat.shape[:1]),
            self._flags.reserve(flat.shape[:1]),
        )
        sequence.padded_sources(offsets, out.shape[1], sources, is_hole)
        take(x, sources, flat)
        np.copyto(flat, value, where=_per_row(is_hole, flat))

    def unpad(self, padded: Array, offsets: I64, out: Array) -> None:
        """`out` (n, …) = the padded value of each element, 0 for one that was cut off."""
        positions, is_cut = (
            self._positions.reserve(out.shape[:1]),
            self._flags.reserve(out.shape[:1]),
        )
        sequence.padded_places(offsets, padded.shape[1], positions, is_cut)
        take(padded.reshape(-1, *out.shape[1:]), positions, out)
        np.copyto(out, 0, where=_per_row(is_cut, out))


def greatest(lengths: I64) -> int:
    """The greatest of the lengths, at least 1: an array of no places cannot be computed with."""
    return max(1, int(lengths.max(initial=0)))


def _per_row(flags: Array, rows: Array) -> Array:
    """Flags in a shape that broadcasts over each row."""
    return flags.reshape(-1, *[1] * (rows.ndim - 1))


@computes("sequence_pad")
def sequence_pad(op: Bound) -> Step:
    x, out, length = op.one("x"), op.one("out"), op.one("length")
    maxlen, value = op.attrs["maxlen"], op.attrs["pad_value"]
    padding = _Padding()

    def run() -> None:
        offsets, sizes = offsets_of(x), np.diff(offsets_of(x))
        width = greatest(sizes) if maxlen == ANY else maxlen
        np.minimum(sizes, width, out=length.reserve((len(sizes), 1)).reshape(-1))
        result = out.reserve((len(sizes), width, *x.value.shape[1:]))
        padding.pad(x.value, offsets, value, result)

    return run


@computes("sequence_pad_grad")
def sequence_pad_grad(op: Bound) -> Step:
    x, grad, x_grad = op.one("x"), op.one("out@GRAD"), op.one("x@GRAD")
    padding = _Padding()
    return lambda: padding.unpad(grad.value, offsets_of(x), x_grad.reserve(x.value.shape))


@computes("sequence_unpad")
def sequence_unpad(op: Bound) -> Step:
    x, length, out = op.one("x"), op.one("length"), op.one("out")
    padding = _Padding()

    def run() -> None:
        sizes = length.value.reshape(-1)
        check_slices(np.zeros_like(sizes), sizes, np.full_like(sizes, x.value.shape[1]))
        out.offsets = offsets_from(sizes)
        result = out.reserve((int(out.offsets[-1]), *x.value.shape[2:]))
        padding.unpad(x.value, out.offsets, result)

    return run


@computes("sequence_unpad_grad")
def sequence_unpad_grad(op: Bound) -> Step:
    x, grad, x_grad = op.one("x"), op.one("out@GRAD"), op.one("x@GRAD")
    padding = _Padding()
    return lambda: padding.pad(grad.value, offsets_of(grad), 0, x_grad.reserve(x.value.shape))


@computes("sequence_mask")
def sequence_mask(op: Bound) -> Step:
    x, out, maxlen = op.one("x"), op.one("out"), op.attrs["maxlen"]

    def run() -> None:
        lengths = x.value.reshape(-1, 1)
        columns = np.arange(greatest(lengths) if maxlen == ANY else maxlen)
        np.less(columns, lengths, out=out.reserve((len(lengths), len(columns))))

    return run


# --- other forms ----------------------------------------------------------------------------------


class _Neighbours:
    """Places of the neighbours of each element, and which of them are outside its example."""

    def __init__(self, start: int, length: int) -> None:
        self._start, self._length = start, length
        self._places, self._flags = new_positions(), Cell("flags", np.bool_)

    def of(self, offsets: I64) -> tuple[I64, Array]:
        """Return places (n · length,) and flags of the same shape, valid until the next call."""
        shape = (int(offsets[-1]), self._length)
        places, flags = self._places.reserve(shape), self._flags.reserve(shape)
        sequence.context_sources(offsets, self._start, places, flags)
        return places.reshape(-1), flags.reshape(-1)


@computes("sequence_context")
def sequence_context(op: Bound) -> Step:
    x, out, value = op.one("input"), op.one("out"), op.attrs["pad_value"]
    length, neighbours = op.attrs["length"], _Neighbours(op.attrs["start"], op.attrs["length"])

    def run() -> None:
        places, outside = neighbours.of(offsets_of(x))
        width = int(np.prod(x.value.shape[1:]))
        result = out.reserve((len(x.value), length * width)).reshape(-1, width)
        if len(x.value):
            take(x.value.reshape(-1, width), places, result)
            np.copyto(result, value, where=outside[:, None])

    return run


@computes("sequence_context_grad")
def sequence_context_grad(op: Bound) -> Step:
    x, grad, x_grad = op.one("input"), op.one("out@GRAD"), op.one("input@GRAD")
    neighbours = _Neighbours(op.attrs["start"], op.attrs["length"])
    add_rows, spare = op.kernel(rows.scatter_add_), op.scratch()

    def run() -> None:
        places, outside = neighbours.of(offsets_of(x))
        result = x_grad.reserve(x.value.shape)
        result.fill(0)
        width = int(np.prod(x.value.shape[1:]))
        parts = spare.reserve((len(places), width))
        np.copyto(parts, grad.value.reshape(-1, width))
        np.copyto(parts, 0, where=outside[:, None])
        add_rows(result.reshape(-1, width), places.astype(np.int32), parts)

    return run


@computes("sequence_rows")
def sequence_rows(op: Bound) -> Step:
    x, out = op.one("x"), op.one("out")

    def run() -> None:
        check_one_each(x)
        out.alias(x.value if x.value.ndim > 1 else x.value.reshape(-1, 1))

    return run


@computes("sequence_rows_grad")
def sequence_rows_grad(op: Bound) -> Step:
    x, grad, x_grad = op.one("x"), op.one("out@GRAD"), op.one("x@GRAD")

    def run() -> None:
        d = grad.value
        x_grad.alias(d if x.value.ndim > 1 else d.reshape(-1))

    return run


@computes("sequence_reshape")
def sequence_reshape(op: Bound) -> Step:
    x, out, width = op.one("input"), op.one("out"), op.attrs["width"]

    def run() -> None:
        numbers = offsets_of(x) * x.value.shape[1]
        if bool((numbers % width).any()):
            wrong = int(np.flatnonzero(numbers % width)[0]) - 1
            raise DataError(
                f"Example {wrong} of {x.name} has numbers that do not fill rows of {width}."
            )
        out.offsets = numbers // width
        result = out.reserve((int(out.offsets[-1]), width))
        np.copyto(result, x.value.reshape(-1, width))

    return run


@computes("sequence_reshape_grad")
def sequence_reshape_grad(op: Bound) -> Step:
    x, grad, x_grad = op.one("input"), op.one("out@GRAD"), op.one("input@GRAD")

    def run() -> None:
        np.copyto(x_grad.reserve(x.value.shape), grad.value.reshape(x.value.shape))

    return run


@computes("sequence_regroup")
def sequence_regroup(op: Bound) -> Step:
    x, y, out, given = op.one("x"), op.maybe("y"), op.one("out"), op.attrs["offsets"]
    fixed = np.array(given, np.int64)

    def run() -> None:
        offsets = fixed if y is None else y.value if y.offsets is None else y.offsets
        _check_offsets(x, offsets)
        out.offsets = np.array(offsets)
        np.copyto(out.reserve(x.value.shape), x.value)

    return run


@computes("sequence_regroup_grad")
def sequence_regroup_grad(op: Bound) -> Step:
    x, grad, x_grad = op.one("x"), op.one("out@GRAD"), op.one("x@GRAD")
    return lambda: np.copyto(x_grad.reserve(x.value.shape), grad.value)


def _check_offsets(x: Cell, offsets: I64) -> None:
    """Raise unless lists that begin at `offsets` hold the rows of x."""
    begins = len(offsets) > 1 and offsets[0] == 0 and bool((np.diff(offsets) >= 0).all())
    if not begins or offsets[-1] != len(x.value):
        shown = ", ".join(map(str, offsets[:8])) + (", …" if len(offsets) > 8 else "")
        raise DataError(
            f"{x.name} has {len(x.value)} rows, which lists that begin at {shown} do not hold.",
            hint="Offsets begin with 0, never fall, and end with the number of rows.",
        )
