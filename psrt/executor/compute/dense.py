"""Products: BLAS into preallocated memory, then one pass for bias and activation."""

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

    def record(commands: EagerBackend) -> None:
        (first, _), width = parts[0], parts[0][1].value.shape[1]
        result = out.reserve((*first.value.shape[:-1], width)).reshape(-1, width)
        for number, (x, w) in enumerate(parts):
            commands.product(_rows(x.value), w.value, result, adds=number > 0)
        if bias is not None:
            commands.bias(result, bias.value, is_relu)
        elif is_relu:
            commands.relu_(result)

    return op.recorded(record)


def _rows(x: Array) -> Array:
    """`x` with all dimensions except the last merged into one."""
    return x if x.ndim == 2 else x.reshape(-1, x.shape[-1])


@computes("fc_grad")
def fc_grad(op: Bound) -> Step:
    parts = list(zip(op.all("x"), op.all("w"), op.many("x@GRAD"), op.many("w@GRAD"), strict=True))
    before_activation = _before_activation(op)

    def record(commands: EagerBackend) -> None:
        rows = before_activation(commands)
        for x, w, x_grad, w_grad in parts:
            if w_grad is not None:
                _weight_gradient(commands, x, rows, w_grad)
            if x_grad is not None:
                _input_gradient(commands, x, w, rows, x_grad)

    return op.recorded(record)


def _weight_gradient(commands: EagerBackend, x: Cell, rows: Array, w_grad: Cell) -> None:
    inputs = _rows(x.value)
    commands.product(inputs.T, rows, w_grad.reserve((inputs.shape[1], rows.shape[1])))


def _input_gradient(commands: EagerBackend, x: Cell, w: Cell, rows: Array, x_grad: Cell) -> None:
    # BLAS takes four times as long as a loop for an outer product.
    product = commands.outer if rows.shape[1] == 1 else commands.product
    product(rows, w.value.T, _rows(x_grad.reserve(x.value.shape)))


@computes("fc_grad_rows")
def fc_grad_rows(op: Bound) -> Step:
    before_activation = _before_activation(op, op.maybe("rows@GRAD"))

    def record(commands: EagerBackend) -> None:
        before_activation(commands)

    return op.recorded(record)


@computes("fc_grad_w")
def fc_grad_w(op: Bound) -> Step:
    x, rows, w_grad, spare = op.one("x"), op.one("rows@GRAD"), op.one("w@GRAD"), op.scratch()
    return op.recorded(
        lambda commands: _weight_gradient(commands, x, _matrix(commands, rows, spare), w_grad)
    )


@computes("fc_grad_x")
def fc_grad_x(op: Bound) -> Step:
    x, w, rows, x_grad = op.one("x"), op.one("w"), op.one("rows@GRAD"), op.one("x@GRAD")
    spare = op.scratch()
    return op.recorded(
        lambda commands: _input_gradient(commands, x, w, _matrix(commands, rows, spare), x_grad)
    )


def _matrix(commands: EagerBackend, rows: Cell, spare: Cell) -> Array:
    """A value as a C-contiguous matrix, copied to the memory of `spare` if necessary."""
    value = rows.value
    if value.flags.c_contiguous:
        return _rows(value)
    copied = spare.reserve(value.shape)
    commands.copy(value, copied)
    return _rows(copied)


def _before_activation(op: Bound, into: Cell | None = None) -> Callable[[EagerBackend], Array]:
    """Record the gradients of the bias and before the activation; return the latter, (n, width).

    It is written to `into`, which other ops read, or else to memory that no other op reads.
    """
    grad, bias_grad, spare = op.one("out@GRAD"), op.maybe("bias@GRAD"), op.scratch()
    if op.attrs["activation"] == "relu":
        return _before_relu(op, bias_grad, into)

    def record(commands: EagerBackend) -> Array:
        rows = _matrix(commands, grad, spare)
        if bias_grad is not None:
            commands.column_sums(rows, bias_grad.reserve(rows.shape[1:]))
        return rows

    return record


def _before_relu(
    op: Bound, bias_grad: Cell | None, into: Cell | None
) -> Callable[[EagerBackend], Array]:
    out, grad, masked, spare = op.one("out"), op.one("out@GRAD"), op.scratch(), op.own()
    overwrites = op.may_overwrite("out@GRAD") and into is None

    def record(commands: EagerBackend) -> Array:
        kept, given = _rows(out.value), _matrix(commands, grad, into or masked)
        sums = (bias_grad or spare).reserve(kept.shape[1:])
        stays = overwrites or not grad.value.flags.c_contiguous
        result = given if stays else _rows((into or masked).reserve(out.value.shape))
        commands.relu_grad(kept, given, result, sums)
        return result

    return record


# --- matrix products ------------------------------------------------------------------------------


def _transposed(x: Array, transpose: bool) -> Array:
    return x.swapaxes(-1, -2) if transpose else x


def _multiply(x: Array, y: Array, out: Array) -> Array:
    """x · y; many matrices times one matrix is one product."""
    if y.ndim == 2 < x.ndim and x.flags.c_contiguous:
        np.matmul(_rows(x), y, out=_rows(out))
    else:
        np.matmul(x, y, out=out)
    return out


@computes("matmul")
def matmul(op: Bound) -> Step:
    x, y, out, alpha = op.one("x"), op.one("y"), op.one("out"), op.attrs["alpha"]
    transpose_x, transpose_y = op.attrs["transpose_x"], op.attrs["transpose_y"]

    def run() -> None:
        a, b = _transposed(x.value, transpose_x), _transposed(y.value, transpose_y)
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        result = _multiply(a, b, out.reserve((*batch, a.shape[-2], b.shape[-1])))
        if alpha != 1:
            result *= alpha

    return run


@computes("matmul_grad")
def matmul_grad(op: Bound) -> Step:
    """For c = a b: da = d bᵀ, db = aᵀ d; for a transposed operand, the transposed product."""
    x, y, grad, alpha = op.one("x"), op.one("y"), op.one("out@GRAD"), op.attrs["alpha"]
    x_grad, y_grad, spare = op.maybe("x@GRAD"), op.maybe("y@GRAD"), op.scratch()
    transpose_x, transpose_y = op.attrs["transpose_x"], op.attrs["transpose_y"]

    def run() -> None:
        d = grad.value
        a, b = _transposed(x.value, transpose_x), _transposed(y.value, transpose_y)
        if x_grad is not None:
            factors = (b, _transposed(d, True)) if transpose_x else (d, _transposed(b, True))
            _write_product(factors, alpha, x_grad.reserve(x.value.shape), spare)
        if y_grad is not None:
            factors = (_transposed(d, True), a) if transpose_y else (_transposed(a, True), d)
            _write_product(factors, alpha, y_grad.reserve(y.value.shape), spare)

    return run


def _write_product(factors: tuple[Array, Array], alpha: float, out: Array, spare: Cell) -> None:
    """The product, summed over the leading dimensions in which `out` was broadcast."""
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
