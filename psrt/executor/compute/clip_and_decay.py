"""Gradient clipping and weight decay; for sparse tables, of the rows of the step."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from psrt.core.types import Array
from psrt.executor.compute.registry import Bound, Step, computes
from psrt.executor.memory import BoundRows, Cell
from psrt.kernels.optimizers import elementwise

# --- decay ----------------------------------------------------------------------------------------


def _weights(op: Bound) -> Callable[[Array], Array]:
    """Weights of a gradient: a whole parameter, or the rows of this step.

    Rows of a table that is read without a copy are gathered into the given memory.
    """
    table = op.tables.get(op.op.inputs["parameter"][0])
    if table is not None and table.parameter.sparse:
        return lambda memory: _rows_of_step(table, memory)
    parameter = op.one("parameter")
    return lambda memory: parameter.value


def _rows_of_step(table: BoundRows, memory: Array) -> Array:
    if not table.has_own_gradient_rows:
        return table.values
    assert table.ids is not None, table.parameter.name
    # Earlier lookups have checked the ids; mode "raise" would make a copy of the result first.
    return np.take(table.values, table.ids, axis=0, out=memory, mode="clip")


@computes("l1_decay")
def l1_decay(op: Bound) -> Step:
    gradient, out, weights = op.one("gradient"), op.one("out"), _weights(op)
    coeff = op.attrs["coeff"]

    def run() -> None:
        result = out.reserve(gradient.value.shape)
        np.sign(weights(result), out=result)
        result *= coeff
        result += gradient.value

    return run


@computes("l2_decay")
def l2_decay(op: Bound) -> Step:
    gradient, out, weights = op.one("gradient"), op.one("out"), _weights(op)
    coeff = op.attrs["coeff"]

    def run() -> None:
        result = out.reserve(gradient.value.shape)
        np.multiply(weights(result), coeff, out=result)
        result += gradient.value

    return run


# --- clipping -------------------------------------------------------------------------------------


@computes("clip_gradient_by_value")
def clip_gradient_by_value(op: Bound) -> Step:
    gradient, out = op.one("gradient"), op.one("out")
    low, high = op.attrs["min"], op.attrs["max"]

    def run() -> None:
        np.clip(gradient.value, low, high, out=out.reserve(gradient.value.shape))

    return run


@computes("clip_gradient_by_norm")
def clip_gradient_by_norm(op: Bound) -> Step:
    gradient, out, norm = op.one("gradient"), op.one("out"), op.attrs["norm"]
    return lambda: _scale(gradient, out, norm, math.sqrt(_squares(gradient.value)))


@computes("global_norm")
def global_norm(op: Bound) -> Step:
    gradients, out = op.all("gradients"), op.one("out")

    def run() -> None:
        out.reserve(()).fill(math.sqrt(math.fsum(_squares(g.value) for g in gradients)))

    return run


@computes("scale_by_global_norm")
def scale_by_global_norm(op: Bound) -> Step:
    gradient, found, out = op.one("gradient"), op.one("global_norm"), op.one("out")
    norm = op.attrs["norm"]
    return lambda: _scale(gradient, out, norm, float(found.value))


def _scale(gradient: Cell, out: Cell, norm: float, found: float) -> None:
    """out = gradient · norm / max(norm, found); a norm that is not finite spoils the gradient."""
    factor = norm / found if not found <= norm else 1.0
    np.multiply(gradient.value, factor, out=out.reserve(gradient.value.shape))


def _squares(x: Array) -> float:
    """Σ x² in double precision."""
    flat = x.reshape(-1)
    return elementwise.sum_squares(flat) if flat.dtype == np.float32 else float(np.dot(flat, flat))
