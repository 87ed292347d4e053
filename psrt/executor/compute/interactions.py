"""Products of the features of one example."""

from __future__ import annotations

import numpy as np

from psrt.core.types import Array
from psrt.executor.compute.registry import Bound, Step, computes
from psrt.kernels.ops import interactions


def _dot(x: Array, y: Array) -> Array:
    """x · y of each row, (rows, 1)."""
    dots: Array = np.einsum("ij,ij->i", x, y)
    return dots[:, None]


def _inverse(x: Array) -> Array:
    """1 / x, and 0 for 0."""
    return np.divide(1, x, out=np.zeros_like(x), where=x != 0)


@computes("cos_sim")
def cos_sim(op: Bound) -> Step:
    x, y, out = op.one("x"), op.one("y"), op.one("out")

    def run() -> None:
        a, b = x.value, y.value
        inverse = _inverse(np.sqrt(_dot(a, a)) * np.sqrt(_dot(b, b)))
        np.multiply(_dot(a, b), inverse, out=out.reserve((len(a), 1)))

    return run


@computes("cos_sim_grad")
def cos_sim_grad(op: Bound) -> Step:
    x, y, out, grad = op.one("x"), op.one("y"), op.one("out"), op.one("out@GRAD")
    x_grad, y_grad, product = op.maybe("x@GRAD"), op.maybe("y@GRAD"), op.scratch()

    def run() -> None:
        for mine, other, target in ((x.value, y.value, x_grad), (y.value, x.value, y_grad)):
            if target is None:
                continue
            square = _dot(mine, mine)
            inverse = _inverse(np.sqrt(square) * np.sqrt(_dot(other, other)))
            result = target.reserve(mine.shape)
            np.multiply(other, grad.value * inverse, out=result)
            towards = grad.value * out.value * _inverse(square)
            result -= np.multiply(mine, towards, out=product.reserve(mine.shape))

    return run


@computes("fm_interaction")
def fm_interaction(op: Bound) -> Step:
    x, out, sums, by_pairs = op.one("input"), op.one("out"), op.one("sums"), op.scratch()
    pairwise_products = op.kernel(interactions.pairwise_products)
    by_column = op.attrs["by_column"]

    def run() -> None:
        rows, _, width = x.value.shape
        columns = (out if by_column else by_pairs).reserve((rows, width))
        pairwise_products(x.value, sums.reserve((rows, width)), columns)
        if not by_column:
            np.sum(columns, axis=1, keepdims=True, out=out.reserve((rows, 1)))

    return run


@computes("fm_interaction_grad")
def fm_interaction_grad(op: Bound) -> Step:
    x, sums, grad = op.one("input"), op.one("sums"), op.one("out@GRAD")
    x_grad = op.one("input@GRAD")
    pairwise_products_grad = op.kernel(interactions.pairwise_products_grad)

    def run() -> None:
        d = np.ascontiguousarray(grad.value)
        pairwise_products_grad(x.value, sums.value, d, x_grad.reserve(x.value.shape))

    return run
