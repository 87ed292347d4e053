"""Ops that draw numbers: from the op's seed and the step context, see `psrt.kernels.ops.random`."""

from __future__ import annotations

import math

import numpy as np

from psrt.core.specs import Initializer, Normal, Uniform
from psrt.executor.compute.registry import Bound, Step, computes
from psrt.graph.ops import ROWS
from psrt.kernels.ops import random as kernels
from psrt.kernels.tables import fill_rows

_STEP = 0x9E3779B97F4A7C15
_SEEDS = 2**63 - 1


@computes("dropout")
def dropout(op: Bound) -> Step:
    x, out, mask = op.one("x"), op.one("out"), op.one("mask")
    scale, scale_kept, context = _scale(op), op.kernel(kernels.scale_kept), op.context
    seed, is_fixed = op.attrs["seed"], op.attrs["fix_seed"]
    is_batch = op.shapes("x")[0][0] == ROWS
    dropped = round(op.attrs["p"] * kernels.LEVELS)

    def train() -> None:
        values = x.value
        kept = mask.reserve(values.shape)
        step, first_row = 0 if is_fixed else context.step, context.first_example if is_batch else 0
        kernels.keep_mask(seed, step, first_row, dropped, kept.reshape(len(values), -1))
        result = out.reserve(values.shape)
        scale_kept(values.reshape(-1), kept.reshape(-1), scale, result.reshape(-1))

    def test() -> None:
        np.multiply(x.value, scale, out=out.reserve(x.value.shape))

    return test if op.attrs["is_test"] else train


@computes("dropout_grad")
def dropout_grad(op: Bound) -> Step:
    grad, x_grad, mask = op.one("out@GRAD"), op.one("x@GRAD"), op.one("mask")
    scale, scale_kept, is_test = _scale(op), op.kernel(kernels.scale_kept), op.attrs["is_test"]

    def run() -> None:
        result = x_grad.reserve(grad.value.shape)
        if is_test:
            np.multiply(grad.value, scale, out=result)
        else:
            kept = mask.value.reshape(-1)
            scale_kept(grad.value.reshape(-1), kept, scale, result.reshape(-1))

    return run


def _scale(op: Bound) -> float:
    """Factor of kept elements; in a test all elements are kept."""
    kept = 1.0 - float(op.attrs["p"])
    if op.attrs["implementation"] == "downgrade_in_infer":
        return kept if op.attrs["is_test"] else 1.0
    return 1.0 if op.attrs["is_test"] or kept == 0.0 else 1.0 / kept


@computes("shuffle_rows")
def shuffle_rows(op: Bound) -> Step:
    x, out, order, context = op.one("x"), op.one("out"), op.one("order"), op.context
    seed, is_fixed = op.attrs["seed"] & _SEEDS, op.attrs["fix_seed"]

    def run() -> None:
        rows = x.value.reshape(-1, x.value.shape[-1])
        key = (seed, 0 if is_fixed else context.step, context.first_example)
        order.reserve((len(rows),))[...] = np.random.default_rng(key).permutation(len(rows))
        np.take(rows, order.value, axis=0, out=out.reserve(x.value.shape).reshape(rows.shape))

    return run


@computes("shuffle_rows_grad")
def shuffle_rows_grad(op: Bound) -> Step:
    order, grad, x_grad = op.one("order"), op.one("out@GRAD"), op.one("x@GRAD")

    def run() -> None:
        width = grad.value.shape[-1]
        result = x_grad.reserve(grad.value.shape).reshape(-1, width)
        result[order.value] = grad.value.reshape(-1, width)

    return run


@computes("uniform_random")
def uniform_random(op: Bound) -> Step:
    return _drawn(op, Uniform(op.attrs["a"], op.attrs["b"]))


@computes("gaussian_random")
def gaussian_random(op: Bound) -> Step:
    return _drawn(op, Normal(op.attrs["a"], op.attrs["b"]))


def _drawn(op: Bound, numbers: Initializer) -> Step:
    """Rows as parameters have them at first: each example has a row of its own in each step."""
    out, like, context = op.one("out"), op.maybe("input"), op.context
    seed, (first, *inner) = op.attrs["seed"], op.attrs["shape"]
    fixed = op.attrs["fix_seed"]

    def run() -> None:
        of_batch = first == ROWS and like is not None
        rows = len(like.value) if of_batch and like is not None else first
        start = context.first_example if of_batch else 0
        made = np.empty((rows, math.prod(inner)), np.float32)
        of_step = (seed + (0 if fixed else context.step * _STEP)) & _SEEDS
        fill_rows(numbers, of_step, np.arange(start, start + rows, dtype=np.int64), made)
        np.copyto(out.reserve((rows, *inner)), made.reshape(rows, *inner))

    return run
