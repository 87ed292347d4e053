"""Products: BLAS into memory that is there already, then one pass for bias and activation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from psrt.core.types import Array
from psrt.executor.compute.elementwise import sum_to
from psrt.executor.compute.registry import Bound, Step, computes
from psrt.executor.memory import Cell
from psrt.kernels.ops import EagerBackend


@computes("fc")
def fc(op: Bound) -> Step:
    parts = list(zip(op.all("x"), op.all("w"), strict=True))
    out, bias, is_relu = op.one("out"), op.maybe("bias"), op.attrs["activation"] == "relu"

    def note(tape: EagerBackend) -> None:
        (first, _), width = parts[0], parts[0][1].value.shape[1]
        result = out.reserve((*first.value.shape[:-1], width)).reshape(-1, width)
        for number, (x, w) in enumerate(parts):
            tape.product(_rows(x.value), w.value, result, adds=number > 0)
        if bias is not None:
            tape.bias(result, bias.value, is_relu)
        elif is_relu:
            tape.relu_(result)

    return op.noted(note)


def _rows(x: Array) -> Array:
    """All but the last dimension as one."""
    return x if x.ndim == 2 else x.reshape(-1, x.shape[-1])


@computes("fc_grad")
def fc_grad(op: Bound) -> Step:
    parts = list(zip(op.all("x"), op.all("w"), op.many("x@GRAD"), op.many("w@GRAD"), strict=True))
    before_activation = _before_activation(op)

    def note(tape: EagerBackend) -> None:
        rows = before_activation(tape)
        for x, w, x_grad, w_grad in parts:
            if w_grad is not None:
                _weight_gradient(tape, x, rows, w_grad)
            if x_grad is not None:
                _input_gradient(tape, x, w, rows, x_grad)

    return op.noted(note)


def _weight_gradient(tape: EagerBackend, x: Cell, rows: Array, w_grad: Cell) -> None:
    inputs = _rows(x.value)
    tape.product(inputs.T, rows, w_grad.reserve((inputs.shape[1], rows.shape[1])))


def _input_gradient(tape: EagerBackend, x: Cell, w: Cell, rows: Array, x_grad: Cell) -> None:
    # BLAS takes four times as long as a loop for an outer product.
    product = tape.outer if rows.shape[1] == 1 else tape.product
    product(rows, w.value.T, _rows(x_grad.reserve(x.value.shape)))


@computes("fc_grad_rows")
def fc_grad_rows(op: Bound) -> Step:
    before_activation = _before_activation(op, op.maybe("rows@GRAD"))

    def note(tape: EagerBackend) -> None:
        before_activation(tape)

    return op.noted(note)


@computes("fc_grad_w")
def fc_grad_w(op: Bound) -> Step:
    x, rows, w_grad, spare = op.one("x"), op.one("rows@GRAD"), op.one("w@GRAD"), op.scratch()
    return op.noted(lambda tape: _weight_gradient(tape, x, _matrix(tape, rows, spare), w_grad))


@computes("fc_grad_x")
def fc_grad_x(op: Bound) -> Step:
    x, w, rows, x_grad = op.one("x"), op.one("w"), op.one("rows@GRAD"), op.one("x@GRAD")
    spare = op.scratch()
    return op.noted(lambda tape: _input_gradient(tape, x, w, _matrix(tape, rows, spare), x_grad))


def _matrix(tape: EagerBackend, rows: Cell, spare: Cell) -> Array:
    """A value as a C-contiguous matrix; in the memory of `spare` unless it is one."""
    value = rows.value
    if value.flags.c_contiguous:
        return _rows(value)
    copied = spare.reserve(value.shape)
    tape.copy(value, copied)
    return _rows(copied)


def _before_activation(op: Bound, into: Cell | None = None) -> Callable[[EagerBackend], Array]:
    """The gradient (n, width) of what the activation was applied to; the bias gets its own.

    It lies in `into`, which other ops read, or else where no other op looks.
    """
    grad, bias_grad, spare = op.one("out@GRAD"), op.maybe("bias@GRAD"), op.scratch()
    if op.attrs["activation"] == "relu":
        return _before_relu(op, bias_grad, into)

    def note(tape: EagerBackend) -> Array:
        rows = _matrix(tape, grad, spare)
        if bias_grad is not None:
            tape.column_sums(rows, bias_grad.reserve(rows.shape[1:]))
        return rows

    return note


def _before_relu(
    op: Bound, bias_grad: Cell | None, into: Cell | None
) -> Callable[[EagerBackend], Array]:
    out, grad, masked, spare = op.one("out"), op.one("out@GRAD"), op.scratch(), op.own()
    in_place = op.may_overwrite("out@GRAD") and into is None

    def note(tape: EagerBackend) -> Array:
        kept, given = _rows(out.value), _matrix(tape, grad, into or masked)
        sums = (bias_grad or spare).reserve(kept.shape[1:])
        stays = in_place or not grad.value.flags.c_contiguous
        result = given if stays else _rows((into or masked).reserve(out.value.shape))
        tape.relu_grad(kept, given, result, sums)
        return result

    return note


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
