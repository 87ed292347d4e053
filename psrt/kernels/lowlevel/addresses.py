"""Addresses of float32 arrays, and arrays by their addresses inside of kernels.

The caller keeps the memory; sizes are not checked. `numba.carray` would make such arrays, but
returns a type that a kernel without numba's runtime may not return.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np import arrayobj

from psrt.core.types import F32
from psrt.kernels.jit import kernel

_make_array: Any = arrayobj.make_array
_populate: Any = arrayobj.populate_array

_ITEM_BYTES = 4


def _array_at(dimensions: int) -> Any:
    """Generates a C-contiguous array from an address and so many sizes."""
    kind = types.Array(types.float32, dimensions, "C")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address, *shape = args
        strides = [ir.IntType(64)(_ITEM_BYTES)]
        for size in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], size))
        array = _make_array(kind)(context, builder)
        data = builder.inttoptr(address, ir.FloatType().as_pointer())
        _populate(array, data, shape, strides, ir.IntType(64)(_ITEM_BYTES), meminfo=None)
        return array._getvalue()

    return kind(types.int64, *[types.int64] * dimensions), generate


def _vector_at(typing_context: Any, address: Any, size: Any) -> Any:
    """`vector_at(address, size)`."""
    return _array_at(1)


def _matrix_at(typing_context: Any, address: Any, rows: Any, columns: Any) -> Any:
    """`matrix_at(address, rows, columns)`."""
    return _array_at(2)


vector_at: Any = intrinsic(_vector_at)
matrix_at: Any = intrinsic(_matrix_at)


def load() -> None:
    """Load machine code now, so that no step waits for it."""
    for kernel_ in (_of_vector, _of_matrix, _of_rows):
        kernel_.load()


def addresses_of(*arrays: F32) -> list[int]:
    """Addresses of C-contiguous arrays, after `load`; raises TypeError for others.

    `array.ctypes.data` takes ten times as long: 1 µs.
    """
    vector, matrix = _of_vector.dispatcher, _of_matrix.dispatcher
    return [
        matrix(array) if array.ndim == 2 else vector(array if array.ndim == 1 else _flat(array))
        for array in arrays
    ]


def _flat(array: F32) -> F32:
    if not array.flags.c_contiguous:
        raise TypeError("an array with gaps has no address to go on from")
    return array.reshape(-1)


def address_of_rows(matrix: F32) -> int:
    """The address of a matrix of any strides, after `load`."""
    found: int = _of_rows.dispatcher(matrix)
    return found


@kernel("const f4[::1] -> i8", group="op", brief=True)
def _of_vector(array: F32) -> int:
    return array.ctypes.data


@kernel("const f4[:, ::1] -> i8", group="op", brief=True)
def _of_matrix(array: F32) -> int:
    return array.ctypes.data


@kernel("const f4[:, :] -> i8", group="op", brief=True)
def _of_rows(array: F32) -> int:
    return array.ctypes.data
