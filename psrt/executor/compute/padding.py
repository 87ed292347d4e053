"""Ragged vars to examples of equal length and back, and masks of lengths."""

from __future__ import annotations

import numpy as np

from psrt.core.types import I64, Array
from psrt.executor.compute.registry import Bound, Step, computes
from psrt.executor.compute.sequence import (
    check_slices,
    new_positions,
    offsets_from,
    offsets_of,
    take,
)
from psrt.executor.memory import Cell
from psrt.kernels.ops import sequence


class _Padding:
    """Pads examples to `width` elements each, and back; owns the memory for both."""

    def __init__(self, width: int) -> None:
        self._width = width
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
        sequence.padded_sources(offsets, self._width, sources, is_hole)
        take(x, sources, flat)
        np.copyto(flat, value, where=_per_row(is_hole, flat))

    def unpad(self, padded: Array, offsets: I64, out: Array) -> None:
        """`out` (n, …) = the padded value of each element, 0 for one that was cut off."""
        positions, is_cut = (
            self._positions.reserve(out.shape[:1]),
            self._flags.reserve(out.shape[:1]),
        )
        sequence.padded_places(offsets, self._width, positions, is_cut)
        take(padded.reshape(-1, *out.shape[1:]), positions, out)
        np.copyto(out, 0, where=_per_row(is_cut, out))


def _per_row(flags: Array, rows: Array) -> Array:
    """Flags in a shape that broadcasts over each row."""
    return flags.reshape(-1, *[1] * (rows.ndim - 1))


@computes("sequence_pad")
def sequence_pad(op: Bound) -> Step:
    x, out, length = op.one("x"), op.one("out"), op.one("length")
    maxlen, value = op.attrs["maxlen"], op.attrs["pad_value"]
    padding = _Padding(maxlen)

    def run() -> None:
        offsets, sizes = offsets_of(x), np.diff(offsets_of(x))
        np.minimum(sizes, maxlen, out=length.reserve((len(sizes), 1)).reshape(-1))
        result = out.reserve((len(sizes), maxlen, *x.value.shape[1:]))
        padding.pad(x.value, offsets, value, result)

    return run


@computes("sequence_pad_grad")
def sequence_pad_grad(op: Bound) -> Step:
    x, grad, x_grad = op.one("x"), op.one("out@GRAD"), op.one("x@GRAD")
    padding = _Padding(op.attrs["maxlen"])
    return lambda: padding.unpad(grad.value, offsets_of(x), x_grad.reserve(x.value.shape))


@computes("sequence_unpad")
def sequence_unpad(op: Bound) -> Step:
    x, length, out = op.one("x"), op.one("length"), op.one("out")
    maxlen = op.shapes("x")[0][1]
    padding = _Padding(maxlen)

    def run() -> None:
        sizes = length.value.reshape(-1)
        check_slices(np.zeros_like(sizes), sizes, np.full_like(sizes, maxlen))
        out.offsets = offsets_from(sizes)
        result = out.reserve((int(out.offsets[-1]), *x.value.shape[2:]))
        padding.unpad(x.value, out.offsets, result)

    return run


@computes("sequence_unpad_grad")
def sequence_unpad_grad(op: Bound) -> Step:
    x, grad, x_grad = op.one("x"), op.one("out@GRAD"), op.one("x@GRAD")
    padding = _Padding(op.shapes("x")[0][1])
    return lambda: padding.pad(grad.value, offsets_of(grad), 0, x_grad.reserve(x.value.shape))


@computes("sequence_mask")
def sequence_mask(op: Bound) -> Step:
    x, out, columns = op.one("x"), op.one("out"), np.arange(op.attrs["maxlen"])

    def run() -> None:
        lengths = x.value.reshape(-1, 1)
        np.less(columns, lengths, out=out.reserve((len(lengths), len(columns))))

    return run
