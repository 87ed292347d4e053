"""Small computations recorded as commands, then executed in one call without the interpreter.

A thread that returns for the interpreter's lock after every product sometimes finds it taken and
sleeps; to wake up takes a virtual machine 50 to 100 µs. So a `CommandList` records operations and
their arrays, and `execute` runs them all, in order. Arrays are float32 and C-contiguous unless a
method takes others; the list keeps them, and does not read them before `execute`.

`EagerBackend` computes at once by numpy: in float64, which gradient checks use, and where kernels
find no BLAS to call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from psrt.core.types import I64, Array
from psrt.kernels.lowlevel import (
    COLUMN_MAJOR,
    NO_TRANSPOSE,
    ROW_MAJOR,
    TRANSPOSE,
    address_of_rows,
    addresses,
    addresses_of,
    blas,
)
from psrt.kernels.ops import execute

_ITEM_BYTES = 4
_MOST = 2**31 - 1  # numbers of a dimension, for a BLAS of 32 bits


class EagerBackend:
    """Every method computes before it returns."""

    def execute(self) -> None:
        """Run the recorded commands; this backend has none."""

    def product(self, x: Array, y: Array, out: Array, adds: bool = False) -> None:
        """`out` (m, n) = x (m, k) · y (k, n), or += that; x and y may have any strides."""
        if not adds:
            np.matmul(x, y, out=out)
        else:
            out += np.matmul(x, y)

    def outer(self, column: Array, row: Array, out: Array) -> None:
        """`out` (n, d) = column (n, 1) · row (1, d)."""
        np.multiply(column, row, out=out)

    def copy(self, x: Array, out: Array) -> None:
        """`out` = x, of any strides and dtype."""
        np.copyto(out, x)

    def bias(self, x: Array, bias: Array, is_relu: bool) -> None:
        """`x` (n, d) += bias (d,), then max(x, 0) with `is_relu`."""
        x += bias
        if is_relu:
            self.relu_(x)

    def relu_(self, x: Array) -> None:
        """`x` = max(x, 0)."""
        np.maximum(x, 0, out=x)

    def relu_grad(self, out: Array, grad: Array, into: Array, sums: Array) -> None:
        """`into` (n, d) = grad where the relu's out is positive, else 0; `sums` (d,) by column.

        `into` may be `grad`.
        """
        np.copyto(into, np.where(out > 0, grad, 0))
        self.column_sums(into, sums)

    def column_sums(self, x: Array, sums: Array) -> None:
        """`sums` (d,) of x (n, d), in order of rows."""
        np.add.reduce(x, axis=0, out=sums)

    def add(self, out: Array, x: Array) -> None:
        """`out` += x."""
        out += x

    def multiply(self, x: Array, y: Array, out: Array) -> None:
        """`out` = x · y by element."""
        np.multiply(x, y, out=out)

    def mean(self, x: Array, out: Array) -> None:
        """`out` () = the mean of all x."""
        out.fill(np.add.reduce(x, axis=None) / x.size)

    def fill(self, out: Array, value: Array, divisor: int = 1) -> None:
        """Every element of `out` = value () / divisor."""
        out.fill(value / divisor)

    def sigmoid_loss(self, logits: Array, labels: Array, loss: Array, slope: Array) -> None:
        """See `nn.sigmoid_loss`."""
        np.subtract(np.logaddexp(0, logits), logits * labels, out=loss)
        np.subtract(np.exp(-np.logaddexp(0, -logits)), labels, out=slope)


class CommandList(EagerBackend):
    """Every method records a command for `execute`."""

    def __init__(self, routines: I64) -> None:
        self._routines = routines
        self._commands: list[int] = []
        self._kept: list[Any] = []

    def execute(self) -> None:
        """Run the commands recorded since the last time."""
        if self._commands:
            execute.execute(np.array(self._commands, np.int64), self._routines)
            self._commands.clear()
            self._kept.clear()

    def _record(self, code: int, *numbers: int) -> None:
        self._commands += (code, len(numbers), *numbers)

    def _at(self, matrix: Array) -> int:
        """The address of a matrix of any strides, which the list keeps."""
        self._kept.append(matrix)
        return address_of_rows(matrix)

    def _all(self, *arrays: Array) -> list[int]:
        """The addresses of C-contiguous arrays, which the list keeps."""
        self._kept += arrays
        return addresses_of(*arrays)

    def product(self, x: Array, y: Array, out: Array, adds: bool = False) -> None:
        (m, k), n = x.shape, y.shape[1]
        left, right = _transposition(x), _transposition(y)
        fits = y.shape[0] == k and out.shape == (m, n) and 1 < m <= _MOST and 0 < k <= _MOST
        if not (left and right and fits and 0 < n <= _MOST):
            self.execute()
            super().product(x, y, out, adds)
        elif n == 1:
            order = COLUMN_MAJOR if left == NO_TRANSPOSE else ROW_MAJOR
            a, b = (self._at(x), _stride(x, left)), (self._at(y), y.strides[0] // _ITEM_BYTES)
            self._record(execute.GEMV, adds, order, k, m, *a, *b, *self._all(out))
        else:
            a, b = (self._at(x), _stride(x, left)), (self._at(y), _stride(y, right))
            self._record(execute.GEMM, adds, left, right, m, n, k, *a, *b, *self._all(out))

    def outer(self, column: Array, row: Array, out: Array) -> None:
        self._record(execute.OUTER, *out.shape, *self._all(column, row, out))

    def copy(self, x: Array, out: Array) -> None:
        if x.ndim != 2 or not _has_rows(x) or not _has_rows(out):
            self.execute()
            super().copy(x, out)
        else:
            ends = self._at(x), x.strides[0], self._at(out), out.strides[0]
            self._record(execute.COPY, *out.shape, *ends)

    def bias(self, x: Array, bias: Array, is_relu: bool) -> None:
        code = execute.BIAS_RELU if is_relu else execute.BIAS
        self._record(code, *x.shape, *self._all(x, bias))

    def relu_(self, x: Array) -> None:
        self._record(execute.RELU, x.size, *self._all(x))

    def relu_grad(self, out: Array, grad: Array, into: Array, sums: Array) -> None:
        if into is grad:
            self._record(execute.RELU_GRAD_SUMS_, *out.shape, *self._all(out, grad, sums))
        else:
            self._record(execute.RELU_GRAD_SUMS, *out.shape, *self._all(out, grad, into, sums))

    def column_sums(self, x: Array, sums: Array) -> None:
        self._record(execute.COLUMN_SUMS, *x.shape, *self._all(x, sums))

    def add(self, out: Array, x: Array) -> None:
        self._record(execute.ADD, out.size, *self._all(out, x))

    def multiply(self, x: Array, y: Array, out: Array) -> None:
        self._record(execute.MULTIPLY, out.size, *self._all(x, y, out))

    def mean(self, x: Array, out: Array) -> None:
        self._record(execute.MEAN, x.size, *self._all(x, out))

    def fill(self, out: Array, value: Array, divisor: int = 1) -> None:
        self._record(execute.FILL, out.size, *self._all(out, value), divisor)

    def sigmoid_loss(self, logits: Array, labels: Array, loss: Array, slope: Array) -> None:
        places = self._all(logits, labels, loss, slope)
        self._record(execute.SIGMOID_LOSS, logits.size, *places)


def _has_rows(x: Array) -> bool:
    """True if each row of a float32 matrix is contiguous."""
    return x.dtype == np.float32 and x.strides[1] == _ITEM_BYTES


def _transposition(x: Array) -> int:
    """`NO_TRANSPOSE` or `TRANSPOSE`, as BLAS can read a matrix; 0 if it cannot."""
    rows, columns = x.shape
    down, along = x.strides
    if x.dtype != np.float32:
        return 0
    if along == _ITEM_BYTES and _is_stride(down, columns):
        return NO_TRANSPOSE
    return TRANSPOSE if down == _ITEM_BYTES and _is_stride(along, rows) else 0


def _is_stride(size_bytes: int, numbers: int) -> bool:
    return size_bytes % _ITEM_BYTES == 0 and size_bytes >= _ITEM_BYTES * numbers


def _stride(x: Array, transposition: int) -> int:
    """Numbers from one row to the next of the matrix in memory."""
    return x.strides[0 if transposition == NO_TRANSPOSE else 1] // _ITEM_BYTES


def backend_for(dtype: Any) -> Callable[[], EagerBackend]:
    """A factory of backends for floats of a type; loads machine code now, so that no step waits."""
    routines = blas.routines() if dtype == np.float32 else None
    if routines is None:
        return EagerBackend
    execute.execute.load()
    addresses.load()
    return partial(CommandList, routines)
