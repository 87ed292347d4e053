"""Elements of ragged vars: softmax within an example, repetition, reordering.

Kernels compute positions into memory that is kept; `numpy.take` moves the elements, of any dtype.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from psrt.core.errors import DataError, ProgramError
from psrt.core.types import I64, Array
from psrt.executor.compute.pooling import InOrder, width_of
from psrt.executor.compute.registry import Bound, Step, computes
from psrt.executor.memory import Cell
from psrt.kernels.ops import pooling, sequence
from psrt.kernels.tables import rows


def offsets_of(x: Cell) -> I64:
    """Offsets of the examples of a ragged var."""
    offsets = x.offsets
    assert offsets is not None, x.name
    return offsets


def new_positions() -> Cell:
    """Memory for positions of elements."""
    return Cell("positions", np.int64)


def take(x: Array, positions: I64, out: Array) -> None:
    """`out` = x[positions]; positions are valid, and mode "clip" saves numpy a buffer."""
    np.take(x, positions, axis=0, out=out, mode="clip")


# --- softmax --------------------------------------------------------------------------------------


@computes("sequence_softmax")
def sequence_softmax(op: Bound) -> Step:
    x, out = op.one("input"), op.one("out")
    below_maximum = op.kernel(sequence.below_maximum)
    share_of_sum_ = op.kernel(sequence.share_of_sum_)

    def run() -> None:
        result = out.reserve(x.value.shape).reshape(-1)
        below_maximum(x.value.reshape(-1), offsets_of(x), result)
        np.exp(result, out=result)
        share_of_sum_(result, offsets_of(x))

    return run


@computes("sequence_softmax_grad")
def sequence_softmax_grad(op: Bound) -> Step:
    out, grad, x_grad = op.one("out"), op.one("out@GRAD"), op.one("input@GRAD")
    softmax_grad = op.kernel(sequence.softmax_grad)

    def run() -> None:
        result = x_grad.reserve(out.value.shape).reshape(-1)
        softmax_grad(out.value.reshape(-1), grad.value.reshape(-1), offsets_of(out), result)

    return run


# --- a row for each element -----------------------------------------------------------------------


@computes("sequence_expand")
def sequence_expand(op: Bound) -> Step:
    x, y, out, positions = op.one("x"), op.one("y"), op.one("out"), new_positions()

    def run() -> None:
        offsets = offsets_of(y)
        owner = positions.reserve((int(offsets[-1]),))
        sequence.owners(offsets, owner)
        take(x.value, owner, out.reserve((len(owner), *x.value.shape[1:])))

    return run


@computes("sequence_expand_grad")
def sequence_expand_grad(op: Bound) -> Step:
    y, grad, x_grad = op.one("y"), op.one("out@GRAD"), op.one("x@GRAD")
    pool_rows, numbers, width = op.kernel(pooling.pool_rows), InOrder(), width_of(op, "out@GRAD")

    def run() -> None:
        offsets, d = offsets_of(y)[None], np.ascontiguousarray(grad.value).reshape(-1, width)
        result = x_grad.reserve((offsets.shape[1] - 1, *grad.value.shape[1:]))
        index = numbers.index(len(d))
        pool_rows(d, index, offsets, pooling.SUM, result.reshape(-1, width))

    return run


# --- elements in another order --------------------------------------------------------------------


@computes("sequence_reverse")
def sequence_reverse(op: Bound) -> Step:
    return _reverse(op.one("x"), op.one("out"))


@computes("sequence_reverse_grad")
def sequence_reverse_grad(op: Bound) -> Step:
    return _reverse(op.one("out@GRAD"), op.one("x@GRAD"))


def _reverse(x: Cell, out: Cell) -> Step:
    positions = new_positions()

    def run() -> None:
        sources = positions.reserve((len(x.value),))
        sequence.reversed_places(offsets_of(x), sources)
        take(x.value, sources, out.reserve(x.value.shape))

    return run


@computes("sequence_concat")
def sequence_concat(op: Bound) -> Step:
    xs, out, memory = op.all("input"), op.one("out"), new_positions()

    def run() -> None:
        out.offsets, starts = _joined(xs)
        result = out.reserve((int(out.offsets[-1]), *xs[0].value.shape[1:]))
        for x, start in zip(xs, starts, strict=True):
            positions = memory.reserve((len(x.value),))
            sequence.run_places(offsets_of(x), start, positions)
            result[positions] = x.value

    return run


@computes("sequence_concat_grad")
def sequence_concat_grad(op: Bound) -> Step:
    xs, grad, targets = op.all("input"), op.one("out@GRAD"), op.many("input@GRAD")
    memory = new_positions()

    def run() -> None:
        _, starts = _joined(xs)
        for x, start, target in zip(xs, starts, targets, strict=True):
            if target is not None:
                positions = memory.reserve((len(x.value),))
                sequence.run_places(offsets_of(x), start, positions)
                take(grad.value, positions, target.reserve(x.value.shape))

    return run


def _joined(xs: Sequence[Cell]) -> tuple[I64, list[I64]]:
    """Offsets of vars concatenated by example, and the start of each part of each example."""
    offsets = np.sum([offsets_of(x) for x in xs], axis=0)
    starts = [offsets[:-1]]
    for x in xs[:-1]:
        starts.append(starts[-1] + np.diff(offsets_of(x)))
    return offsets, starts


@computes("sequence_slice")
def sequence_slice(op: Bound) -> Step:
    x, out, memory = op.one("input"), op.one("out"), new_positions()
    offset, length = op.one("offset"), op.one("length")

    def run() -> None:
        first, count = offset.value.reshape(-1), length.value.reshape(-1)
        check_slices(first, count, np.diff(offsets_of(x)))
        out.offsets = offsets_from(count)
        positions = memory.reserve((int(out.offsets[-1]),))
        sequence.run_places(out.offsets, offsets_of(x)[:-1] + first, positions)
        take(x.value, positions, out.reserve((len(positions), *x.value.shape[1:])))

    return run


@computes("sequence_slice_grad")
def sequence_slice_grad(op: Bound) -> Step:
    x, grad, x_grad = op.one("input"), op.one("out@GRAD"), op.one("input@GRAD")
    offset, memory = op.one("offset"), new_positions()

    def run() -> None:
        positions = memory.reserve((len(grad.value),))
        starts = offsets_of(x)[:-1] + offset.value.reshape(-1)
        sequence.run_places(offsets_of(grad), starts, positions)
        result = x_grad.reserve(x.value.shape)
        result.fill(0)
        result[positions] = grad.value

    return run


# --- lists of lists -------------------------------------------------------------------------------


@computes("sequence_nest")
def sequence_nest(op: Bound) -> Step:
    x, lengths, out = op.one("input"), op.one("lengths"), op.one("out")

    def run() -> None:
        offsets = offsets_from(lengths.value.reshape(-1))
        given, sizes = offsets[-1:], np.array([len(x.value)])
        if x.offsets is not None and lengths.offsets is not None:
            given, sizes = np.diff(offsets[lengths.offsets]), np.diff(x.offsets)
        if not np.array_equal(sizes, given):
            raise DataError(
                f"The lengths {lengths.name} of the lists of {x.name} do not add up: to "
                f"{given[:8].tolist()}, of {sizes[:8].tolist()} rows."
            )
        out.offsets = offsets
        out.alias(x.value)

    return run


@computes("sequence_lengths")
def sequence_lengths(op: Bound) -> Step:
    x, out = op.one("x"), op.one("out")

    def run() -> None:
        offsets = offsets_of(x)
        np.subtract(offsets[1:], offsets[:-1], out=out.reserve((len(offsets) - 1,)))

    return run


@computes("sequence_nest_grad")
def sequence_nest_grad(op: Bound) -> Step:
    grad, x_grad = op.one("out@GRAD"), op.one("input@GRAD")
    return lambda: x_grad.alias(grad.value)


@computes("sequence_repeat")
def sequence_repeat(op: Bound) -> Step:
    x, y, out, memory = op.one("x"), op.one("y"), op.one("out"), new_positions()

    def run() -> None:
        out.offsets, places = _repeated(x, y, memory)
        take(x.value, places, out.reserve((len(places), *x.value.shape[1:])))

    return run


@computes("sequence_repeat_grad")
def sequence_repeat_grad(op: Bound) -> Step:
    x, y, grad, x_grad = op.one("x"), op.one("y"), op.one("out@GRAD"), op.one("x@GRAD")
    memory, width, add_rows = new_positions(), width_of(op, "x"), op.kernel(rows.scatter_add_)

    def run() -> None:
        _, places = _repeated(x, y, memory)
        result = x_grad.reserve(x.value.shape)
        result.fill(0)
        d = np.ascontiguousarray(grad.value).reshape(-1, width)
        add_rows(result.reshape(-1, width), places.astype(np.int32), d)

    return run


def _repeated(x: Cell, y: Cell, memory: Cell) -> tuple[I64, I64]:
    """Offsets of the lists of x, each as often as its list of y has elements, and the places that
    their elements come from."""
    offsets, times = offsets_of(x), np.diff(offsets_of(y))
    if len(times) != len(offsets) - 1:
        raise DataError(
            f"{x.name} has {len(offsets) - 1} lists, and {y.name}, by which they are repeated, "
            f"{len(times)}."
        )
    made = offsets_from(np.repeat(np.diff(offsets), times))
    places = memory.reserve((int(made[-1]),))
    sequence.run_places(made, np.repeat(offsets[:-1], times), places)
    return made, places


def check_slices(first: I64, count: I64, sizes: I64) -> None:
    """Raise `ProgramError` for a slice outside its example; all arrays (examples,)."""
    bad = np.flatnonzero((first < 0) | (count < 0) | (first + count > sizes))
    if len(bad):
        i = bad[0]
        raise ProgramError(
            f"Example {i} has {sizes[i]} elements, but the slice has {count[i]} from element "
            f"{first[i]} on."
        )


def offsets_from(lengths: I64) -> I64:
    """Offsets (examples + 1,) of examples with these lengths."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
