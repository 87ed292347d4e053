"""Command lists give numpy's results: products to the bit, for any strides of matrices."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from psrt.kernels.lowlevel import blas
from psrt.kernels.ops import command_list, execute
from psrt.kernels.ops.command_list import CommandList, EagerBackend, backend_for

SIZES = [(512, 429, 400), (7, 5, 3), (2, 1, 1), (400, 512, 1), (512, 1, 400), (33, 1000, 2)]


def floats(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def new_list() -> EagerBackend:
    made = backend_for(np.float32)()
    assert isinstance(made, CommandList), "the BLAS of this numpy has names that psrt does not know"
    return made


def both(compute, *outputs):
    """Copies of `outputs` as written by a command list and by numpy."""
    written = []
    for each in (new_list(), EagerBackend()):
        copies = [output.copy() for output in outputs]
        compute(each, *copies)
        each.execute()
        written.append(copies)
    return zip(*written, strict=True)


# --- products -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("turn_y", [False, True])
@pytest.mark.parametrize("turn_x", [False, True])
def test_a_product_has_the_bits_of_matmul(size, turn_x, turn_y):
    m, k, n = size
    x = floats(k, m).T if turn_x else floats(m, k)
    y = floats(n, k, seed=1).T if turn_y else floats(k, n, seed=1)
    out, commands = np.empty((m, n), np.float32), new_list()

    commands.product(x, y, out)
    commands.execute()

    np.testing.assert_array_equal(out, x @ y)


def test_the_columns_of_something_wider_are_multiplied_where_they_lie():
    wide, y, out = floats(64, 90), floats(40, 8, seed=1), np.empty((64, 8), np.float32)
    commands = new_list()

    commands.product(wide[:, 10:50], y, out)
    commands.execute()

    np.testing.assert_array_equal(out, wide[:, 10:50] @ y)


def test_a_product_may_be_added():
    x, y, out = floats(9, 5), floats(5, 4), np.ones((9, 4), np.float32)

    for commands, expected in both(lambda t, into: t.product(x, y, into, adds=True), out):
        np.testing.assert_allclose(commands, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (floats(1, 5), floats(5, 4)),
        (floats(8, 10)[:, ::2], floats(5, 4)),
        (floats(8, 5)[::-1], floats(5, 4)),
        (floats(8, 0), floats(0, 4)),
        (np.broadcast_to(floats(1, 5), (8, 5)), floats(5, 4)),
    ],
)
def test_what_blas_does_not_take_goes_to_numpy(x, y):
    out, commands = np.empty((len(x), 4), np.float32), new_list()

    commands.product(x, y, out)
    commands.execute()

    np.testing.assert_array_equal(out, x @ y)


def test_numpy_comes_after_what_was_recorded_before():
    bias, y, out = floats(5), floats(5, 4), np.empty((1, 4), np.float32)

    def compute(commands, x):
        commands.bias(x, bias, is_relu=False)
        commands.product(x, y, out)  # of one row: not for BLAS

    for commands, _ in both(compute, np.zeros((1, 5), np.float32)):
        np.testing.assert_array_equal(out, commands @ y)


def test_shapes_that_do_not_fit_are_refused_as_by_numpy():
    with pytest.raises(ValueError, match="mismatch in its core dimension"):
        new_list().product(floats(3, 4), floats(5, 6), np.empty((3, 6), np.float32))


@pytest.mark.parametrize("bits", [32, 64])
def test_integers_reach_blas_as_wide_as_it_takes_them(bits):
    number, place = (ctypes.c_int32 if bits == 32 else ctypes.c_int64), ctypes.c_void_p
    strided, real = [place, number], ctypes.c_float
    enums = [ctypes.c_int32] * 3
    gemm = [*enums, *[number] * 3, real, *strided, *strided, real, *strided]
    gemv = [*enums[:2], *[number] * 2, real, *strided, *strided, real, *strided]
    seen = []
    callbacks = [
        ctypes.CFUNCTYPE(None, *arguments)(lambda *given: seen.append(given))
        for arguments in (gemm, gemv)
    ]
    addresses = [ctypes.cast(callback, place).value for callback in callbacks]
    x, y, column, out = floats(4, 3), floats(5, 3).T, floats(3, 1), np.zeros((4, 5), "f4")
    commands = CommandList(np.array([*addresses, bits], np.int64))

    commands.product(x, y, out)
    commands.product(x, column, out[:, :1].copy(), adds=True)
    commands.execute()

    at, _, to = (each.ctypes.data for each in (x, y, out))
    assert seen[0] == (101, 111, 112, 4, 5, 3, 1.0, at, 3, y.ctypes.data, 3, 0.0, to, 5)
    assert seen[1][:11] == (102, 112, 3, 4, 1.0, at, 3, column.ctypes.data, 1, 1.0, seen[1][10])


# --- the rest -------------------------------------------------------------------------------------

X, Y, BIAS = floats(30, 17), floats(30, 17, seed=1), floats(17, seed=2)
OUT, SUMS, ONE = np.empty((30, 17), "f4"), np.empty(17, "f4"), np.full((), 3, "f4")
LABELS = (Y > 0).astype("f4")

COMPUTATIONS = {
    "outer": (lambda t, out: t.outer(X[:, :1].copy(), Y[:1], out), OUT),
    "copy": (lambda t, out: t.copy(X[:, 3:9], out[:, 5:11]), Y),
    "copy of other strides": (lambda t, out: t.copy(X[:, ::2], out[:, :9]), Y),
    "copy of other numbers": (lambda t, out: t.copy(np.arange(6), out), np.empty(6, np.int64)),
    "bias": (lambda t, x: t.bias(x, BIAS, is_relu=False), X),
    "bias and relu": (lambda t, x: t.bias(x, BIAS, is_relu=True), X),
    "relu": (lambda t, x: t.relu_(x), X),
    "relu_grad": (lambda t, into, sums: t.relu_grad(X, Y, into, sums), OUT, SUMS),
    "relu_grad in place": (lambda t, d, sums: t.relu_grad(X, d, d, sums), Y, SUMS),
    "column_sums": (lambda t, sums: t.column_sums(X, sums), SUMS),
    "add": (lambda t, out: t.add(out, X), Y),
    "multiply": (lambda t, out: t.multiply(X, Y, out), OUT),
    "mean": (lambda t, out: t.mean(X, out), np.empty((), "f4")),
    "fill": (lambda t, out: t.fill(out, ONE, 7), OUT),
    "sigmoid_loss": (lambda t, loss, d: t.sigmoid_loss(9 * X, LABELS, loss, d), OUT, OUT),
}


@pytest.mark.parametrize("name", COMPUTATIONS)
def test_a_command_list_does_what_numpy_does(name):
    compute, *outputs = COMPUTATIONS[name]

    for commands, expected in both(compute, *outputs):
        np.testing.assert_allclose(commands, expected, rtol=2e-5, atol=1e-6)


def test_nothing_happens_before_a_list_is_executed_and_then_all_in_order():
    x, commands = X.copy(), new_list()

    commands.add(x, Y)
    commands.relu_(x)
    np.testing.assert_array_equal(x, X)

    commands.execute()
    np.testing.assert_array_equal(x, np.maximum(X + Y, 0))

    commands.execute()
    np.testing.assert_array_equal(x, np.maximum(X + Y, 0))


def test_a_list_keeps_the_arrays_it_has_not_used_yet():
    out, commands = np.zeros(1 << 16, np.float32), new_list()

    commands.add(out, np.ones(1 << 16, np.float32))
    others = [np.full(1 << 16, 9, np.float32) for _ in range(4)]
    commands.execute()

    assert others
    np.testing.assert_array_equal(out, 1)


@pytest.mark.parametrize("wrong", [X.astype(np.float64), X[:, ::2], X.T])
def test_other_dtypes_and_strides_are_refused(wrong):
    with pytest.raises((TypeError, ValueError)):
        new_list().relu_(wrong)


def test_without_a_blas_to_call_numpy_does_all(monkeypatch):
    monkeypatch.setattr(command_list.blas, "routines", lambda: None)

    assert type(backend_for(np.float32)()) is EagerBackend
    assert type(backend_for(np.float64)()) is EagerBackend


def test_a_blas_without_known_names_is_none(monkeypatch):
    monkeypatch.setattr(blas, "_NAMES", (("no_such_{}", 64),))

    assert blas.routines.__wrapped__() is None


def test_every_code_of_a_list_has_a_place():
    """Codes are in groups: products, commands over matrices, commands over elements."""
    assert (
        execute.GEMM
        < execute.GEMV
        < execute.OUTER
        < execute.COLUMN_SUMS
        < execute.RELU
        < execute.SIGMOID_LOSS
    )
