"""Arrays whose elements differ in rows: a list of rows for each element."""

from __future__ import annotations

import numpy as np

from psrt.core.errors import ProgramError
from psrt.executor.compute.registry import Bound, Step, computes
from psrt.executor.compute.repeating.arrays import holds, index_of
from psrt.executor.compute.sequence import offsets_from, offsets_of


@computes("empty_lists")
def empty_lists(op: Bound) -> Step:
    out, shape = op.one("out"), (0, *op.attrs["shape"])

    def run() -> None:
        out.reserve(shape)
        out.offsets = np.zeros(1, np.int64)

    return run


@computes("list_write")
def list_write(op: Bound) -> Step:
    array, x, i, out = op.each("array", "x", "i", "out")
    condition = op.maybe("condition")

    def run() -> None:
        offsets = offsets_of(array)
        parts = np.split(array.value, offsets[1:-1]) if len(offsets) > 1 else []
        if holds(condition):
            at = index_of(i)
            parts += [array.value[:0]] * (at + 1 - len(parts))
            parts[at] = x.value
        out.offsets = offsets_from(np.array([len(part) for part in parts], np.int64))
        result = out.reserve((int(out.offsets[-1]), *x.value.shape[1:]))
        if parts:
            np.concatenate(parts, out=result)

    return run


@computes("list_read")
def list_read(op: Bound) -> Step:
    array, i, out = op.each("array", "i", "out")

    def run() -> None:
        offsets, at = offsets_of(array), index_of(i)
        if at >= len(offsets) - 1:
            raise ProgramError(
                f"Element {at} of an array of {len(offsets) - 1} tensors was read.",
                hint="Write it first; array_length counts the elements.",
            )
        rows = array.value[offsets[at] : offsets[at + 1]]
        np.copyto(out.reserve(rows.shape), rows)

    return run


@computes("list_count")
def list_count(op: Bound) -> Step:
    array, out = op.one("array"), op.one("out")
    return lambda: out.reserve((1,)).fill(len(offsets_of(array)) - 1)
