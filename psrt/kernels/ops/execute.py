"""The kernel that executes a command list: many small computations in one call, see
`psrt.kernels.ops.command_list`.

A command list is numbers: for each command its code, the count of its operands, and these. Arrays
are given by their addresses, all of float32. Commands are not checked here.
"""

from __future__ import annotations

import numpy as np

from psrt.core.types import F32, I64
from psrt.kernels.jit import device, kernel
from psrt.kernels.lowlevel import ROW_MAJOR, TRANSPOSE, gemm, gemv, matrix_at, vector_at
from psrt.kernels.ops import nn

(
    GEMM,
    GEMV,
    OUTER,
    COPY,
    BIAS,
    BIAS_RELU,
    RELU_GRAD_SUMS,
    RELU_GRAD_SUMS_,
    COLUMN_SUMS,
    RELU,
    ADD,
    MULTIPLY,
    MEAN,
    FILL,
    SIGMOID_LOSS,
) = range(15)


@device
def _product(code: int, f: I64, routines: I64) -> None:
    one, beta = np.float32(1.0), np.float32(f[0])
    if code == GEMM:
        gemm(
            routines[0], routines[2], ROW_MAJOR, f[1], f[2], f[3], f[4], f[5],
            one, f[6], f[7], f[8], f[9], beta, f[10], f[4],
        )  # fmt: skip
    else:
        gemv(
            routines[1], routines[2], f[1], TRANSPOSE, f[2], f[3],
            one, f[4], f[5], f[6], f[7], beta, f[8], 1,
        )  # fmt: skip


@device
def _outer(column: F32, row: F32, out: F32) -> None:
    for i in range(len(column)):
        factor, target = column[i], out[i]
        for j in range(len(row)):
            target[j] = factor * row[j]


@device
def _copy(n: int, d: int, x: int, x_stride: int, out: int, out_stride: int) -> None:
    """Rows of `d` numbers at two addresses; strides are in bytes."""
    for i in range(n):
        source, target = vector_at(x + i * x_stride, d), vector_at(out + i * out_stride, d)
        for j in range(d):
            target[j] = source[j]


@device
def _of_layer(code: int, f: I64) -> None:
    """Commands over a matrix (n, d)."""
    n, d = f[0], f[1]
    if code == OUTER:
        _outer(vector_at(f[2], n), vector_at(f[3], d), matrix_at(f[4], n, d))
    elif code == BIAS:
        nn.bias_(matrix_at(f[2], n, d), vector_at(f[3], d))
    elif code == BIAS_RELU:
        nn.bias_relu_(matrix_at(f[2], n, d), vector_at(f[3], d))
    elif code == RELU_GRAD_SUMS:
        out, grad, into = matrix_at(f[2], n, d), matrix_at(f[3], n, d), matrix_at(f[4], n, d)
        nn.relu_grad_sums(out, grad, into, vector_at(f[5], d))
    elif code == RELU_GRAD_SUMS_:
        nn.relu_grad_sums_(matrix_at(f[2], n, d), matrix_at(f[3], n, d), vector_at(f[4], d))
    elif code == COLUMN_SUMS:
        nn.column_sums(matrix_at(f[2], n, d), vector_at(f[3], d))
    elif code == COPY:
        _copy(n, d, f[2], f[3], f[4], f[5])


@device
def _of_elements(code: int, f: I64) -> None:
    """Commands over vectors (n,)."""
    n = f[0]
    x = vector_at(f[1], n)
    if code == RELU:
        nn.relu_(x)
    elif code == ADD:
        nn.add_(x, vector_at(f[2], n))
    elif code == MULTIPLY:
        nn.multiply(x, vector_at(f[2], n), vector_at(f[3], n))
    elif code == MEAN:
        nn.mean(x, vector_at(f[2], 1))
    elif code == FILL:
        nn.fill(x, vector_at(f[2], 1), f[3])
    elif code == SIGMOID_LOSS:
        nn.sigmoid_loss(x, vector_at(f[2], n), vector_at(f[3], n), vector_at(f[4], n))


@kernel("const i8[::1], const i8[::1] -> void", group="op")
def execute(commands: I64, routines: I64) -> None:
    """Run every command; `routines` are those of `blas.routines`."""
    at = 0
    while at < len(commands):
        code, f = commands[at], commands[at + 2 : at + 2 + commands[at + 1]]
        if code <= GEMV:
            _product(code, f, routines)
        elif code <= COLUMN_SUMS:
            _of_layer(code, f)
        else:
            _of_elements(code, f)
        at += 2 + len(f)
