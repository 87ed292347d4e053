"""Products: BLAS into memory that is there already, then one fused pass."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from psrt.core.types import Array
from psrt.executor.cells import Cell
from psrt.executor.compute.elementwise import sum_to
from psrt.executor.compute.table import Bound, Step, computes
from psrt.kernels import nn


@computes("fc")
def fc(op: Bound) -> Step:
    (x, w), *others = zip(op.all("x"), op.all("w"), strict=True)
    out, product = op.one("out"), op.scratch()
    finish = _finish(op)

    def run() -> None:
        width = w.value.shape[1]
        result = out.reserve((*x.value.shape[:-1], width)).reshape(-1, width)
        np.matmul(_rows(x.value), w.value, out=result)
        for other_x, other_w in others:
            rows = _rows(other_x.value)
            result += np.matmul(rows, other_w.value, out=product.reserve(result.shape))
        finish(result)

    return run


def _rows(x: Array) -> Array:
    """All but the last dimension as one."""
    return x if x.ndim == 2 else x.reshape(-1, x.shape[-1])


def _finish(op: Bound) -> Callable[[Array], object]:
    """Bias and activation, in place."""
    bias, is_relu = op.maybe("bias"), op.attrs["activation"] == "relu"
    if bias is not None:
        fused = op.form(nn.bias_relu_ if is_relu else nn.bias_)
        return lambda result: fused(result, bias.value)
    if is_relu:
        return lambda result: np.maximum(result, 0, out=result)
    return lambda result: None


@computes("fc_grad")
def fc_grad(op: Bound) -> Step:
    parts = list(zip(op.all("x"), op.all("w"), op.many("x@GRAD"), op.many("w@GRAD"), strict=True))
    before_activation = _before_activation(op)

    def run() -> None:
        rows = before_activation()
        for x, w, x_grad, w_grad in parts:
            if w_grad is not None:
                _weight_gradient(x, rows, w_grad)
            if x_grad is not None:
                _input_gradient(x, w, rows, x_grad)

    return run


def _weight_gradient(x: Cell, rows: Array, w_grad: Cell) -> None:
    inputs = _rows(x.value)
    np.matmul(inputs.T, rows, out=w_grad.reserve((inputs.shape[1], rows.shape[1])))


def _input_gradient(x: Cell, w: Cell, rows: Array, x_grad: Cell) -> None:
    # BLAS takes four times as long as a broadcast for an outer product.
    product = np.multiply if rows.shape[1] == 1 else np.matmul
    product(rows, w.value.T, out=_rows(x_grad.reserve(x.value.shape)))


@computes("fc_grad_rows")
def fc_grad_rows(op: Bound) -> Step:
    before_activation = _before_activation(op, op.maybe("rows@GRAD"))

    def run() -> None:
        before_activation()

    return run


@computes("fc_grad_w")
def fc_grad_w(op: Bound) -> Step:
    x, rows, w_grad = op.one("x"), op.one("rows@GRAD"), op.one("w@GRAD")
    return lambda: _weight_gradient(x, _matrix(rows), w_grad)


@computes("fc_grad_x")
def fc_grad_x(op: Bound) -> Step:
    x, w, rows, x_grad = op.one("x"), op.one("w"), op.one("rows@GRAD"), op.one("x@GRAD")
    return lambda: _input_gradient(x, w, _matrix(rows), x_grad)


def _matrix(rows: Cell) -> Array:
    return np.ascontiguousarray(_rows(rows.value))


def _before_activation(op: Bound, into: Cell | None = None) -> Callable[[], Array]:
    """The gradient (n, width) of what the activation was applied to; the bias gets its own.

    It lies in `into`, which other ops read, or else where no other op looks.
    """
    grad, bias_grad = op.one("out@GRAD"), op.maybe("bias@GRAD")
    if op.attrs["activation"] == "relu":
        return _before_relu(op, bias_grad, into)
    column_sums = op.form(nn.column_sums)

    def run() -> Array:
        rows = np.ascontiguousarray(_rows(grad.value))
        if bias_grad is not None:
            column_sums(rows, bias_grad.reserve(rows.shape[1:]))
        return rows

    return run


def _before_relu(op: Bound, bias_grad: Cell | None, into: Cell | None) -> Callable[[], Array]:
    out, grad, masked, spare = op.one("out"), op.one("out@GRAD"), op.scratch(), op.own()
    in_place = op.may_overwrite("out@GRAD") and into is None
    mask, mask_ = op.form(nn.relu_grad_sums), op.form(nn.relu_grad_sums_)

    def run() -> Array:
        kept, given = _rows(out.value), np.ascontiguousarray(_rows(grad.value))
        sums = (bias_grad or spare).reserve(kept.shape[1:])
        if in_place:
            mask_(kept, given, sums)
            return given
        result = _rows((into or masked).reserve(out.value.shape))
        mask(kept, given, result, sums)
        return result

    return run


# --- matrix products ------------------------------------------------------------------------------


def _turned(x: Array, transpose: bool) -> Array:
    return x.swapaxes(-1, -2) if transpose else x


def _multiply(x: Array, y: Array, out: Array) -> Array:
    """x · y; of many matrices with one, as one product."""
    if y.ndim == 2 < x.ndim and x.flags.c_contiguous:
        np.matmul(_rows(x), y, out=_rows(out))
    else:
        np.matmul(x, y, out=out)
    return out


@computes("matmul")
def matmul(op: Bound) -> Step:
    x, y, out, alpha = op.one("x"), op.one("y"), op.one("out"), op.attrs["alpha"]
    turn_x, turn_y = op.attrs["transpose_x"], op.attrs["transpose_y"]

    def run() -> None:
        a, b = _turned(x.value, turn_x), _turned(y.value, turn_y)
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        result = _multiply(a, b, out.reserve((*batch, a.shape[-2], b.shape[-1])))
        if alpha != 1:
            result *= alpha

    return run


@computes("matmul_grad")
def matmul_grad(op: Bound) -> Step:
    """Of c = a b: da = d bᵀ, db = aᵀ d; where an operand was turned, the turned product."""
    x, y, grad, alpha = op.one("x"), op.one("y"), op.one("out@GRAD"), op.attrs["alpha"]
    x_grad, y_grad, spare = op.maybe("x@GRAD"), op.maybe("y@GRAD"), op.scratch()
    turn_x, turn_y = op.attrs["transpose_x"], op.attrs["transpose_y"]

    def run() -> None:
        d = grad.value
        a, b = _turned(x.value, turn_x), _turned(y.value, turn_y)
        if x_grad is not None:
            factors = (b, _turned(d, True)) if turn_x else (d, _turned(b, True))
            _write_product(factors, alpha, x_grad.reserve(x.value.shape), spare)
        if y_grad is not None:
            factors = (_turned(d, True), a) if turn_y else (_turned(a, True), d)
            _write_product(factors, alpha, y_grad.reserve(y.value.shape), spare)

    return run


def _write_product(factors: tuple[Array, Array], alpha: float, out: Array, spare: Cell) -> None:
    """The product, summed over the dimensions before the last two in which `out` was broadcast."""
    x, y = factors
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    if batch == out.shape[:-2]:
        _multiply(x, y, out)
    elif out.ndim == 2 and x.shape[:-2] == y.shape[:-2]:
        _add_products(x, y, out)
    else:
        sum_to(np.matmul(x, y, out=spare.reserve((*batch, *out.shape[-2:]))), out.shape, out)
    if alpha != 1:
        out *= alpha


def _add_products(x: Array, y: Array, out: Array) -> None:
    """Σ x[i] · y[i] as one product of long matrices: the gradient of one matrix used many times."""
    long_x = _rows(x.swapaxes(-1, -2)).T
    np.matmul(long_x, _rows(y), out=out)


# --- dot products ---------------------------------------------------------------------------------


@computes("dot")
def dot(op: Bound) -> Step:
    x, y, out = op.one("x"), op.one("y"), op.one("out")

    def run() -> None:
        a, b = x.value, y.value
        np.einsum("...i,...i->...", a, b, out=out.reserve((*a.shape[:-1], 1))[..., 0])

    return run


@computes("dot_grad")
def dot_grad(op: Bound) -> Step:
    x, y, grad = op.one("x"), op.one("y"), op.one("out@GRAD")
    x_grad, y_grad = op.maybe("x@GRAD"), op.maybe("y@GRAD")

    def run() -> None:
        if x_grad is not None:
            np.multiply(y.value, grad.value, out=x_grad.reserve(x.value.shape))
        if y_grad is not None:
            np.multiply(x.value, grad.value, out=y_grad.reserve(y.value.shape))

    return run
