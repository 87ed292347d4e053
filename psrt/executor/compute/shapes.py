"""Moving and renaming elements; where a view will do, nothing is copied."""

from __future__ import annotations

import numpy as np

from psrt.executor.compute.table import Bound, Step, computes


@computes("concat")
def concat(op: Bound) -> Step:
    xs, out, axis = op.all("x"), op.one("out"), op.attrs["axis"]

    def run() -> None:
        first = xs[0].value.shape
        width = sum(x.value.shape[axis] for x in xs)
        result = out.reserve((*first[:axis], width, *first[axis + 1 :]))
        np.concatenate([x.value for x in xs], axis=axis, out=result)

    return run


@computes("concat_grad")
def concat_grad(op: Bound) -> Step:
    xs, grad, targets = op.all("x"), op.one("out@GRAD"), op.many("x@GRAD")
    before = (slice(None),) * int(op.attrs["axis"])
    axis = op.attrs["axis"]

    def run() -> None:
        start = 0
        for x, target in zip(xs, targets, strict=True):
            stop = start + x.value.shape[axis]
            if target is not None:
                target.share(grad.value[(*before, slice(start, stop))])
            start = stop

    return run


@computes("reshape")
def reshape(op: Bound) -> Step:
    x, out, shape = op.one("x"), op.one("out"), op.attrs["shape"]
    return lambda: out.share(x.value.reshape(shape))


@computes("reshape_grad")
def reshape_grad(op: Bound) -> Step:
    x, grad, x_grad = op.one("x"), op.one("out@GRAD"), op.one("x@GRAD")
    return lambda: x_grad.share(grad.value.reshape(x.value.shape))
