"""The BLAS that numpy brings, called from inside a kernel: a product without the interpreter.

`routines()` finds the library by threadpoolctl and its functions by name; their addresses are
arguments of kernels, never constants in them, so machine code can be cached. A product is the call
that `numpy.matmul` makes for the same arrays (a gemm, or a gemv where the right side is one
column), so it has equal bits. Callers ask `routines` first, and use numpy where it returns
None.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from threadpoolctl import ThreadpoolController, threadpool_info

from psrt.core.types import I64

_NAMES = (("scipy_cblas_{}64_", 64), ("cblas_{}64_", 64), ("scipy_cblas_{}", 32), ("cblas_{}", 32))
"""Names of C functions in builds of BLAS, and the bits of their integers."""

_THREAD_COUNTS = [
    f"{prefix}openblas_get_num_threads{suffix}"
    for prefix in ("scipy_", "")
    for suffix in ("64_", "")
]

ROW_MAJOR, COLUMN_MAJOR, NO_TRANSPOSE, TRANSPOSE = 101, 102, 111, 112  # of cblas.h


@functools.cache
def routines() -> I64 | None:
    """(3,) int64: the addresses of sgemm and of sgemv and the bits of their integers; or None."""
    loaded = [Path(each["filepath"]) for each in threadpool_info() if each["user_api"] == "blas"]
    own = Path(np.__file__).parents[1]
    for path in sorted(loaded, key=lambda path: own not in path.parents):
        library = ctypes.CDLL(str(path))
        for name, bits in _NAMES:
            found = [_address(library, name.format(each)) for each in ("sgemm", "sgemv")]
            if all(found):
                return np.array([*found, bits], np.int64)
    return None


def thread_counts() -> list[Callable[[], int]]:
    """For each loaded BLAS, a function that returns the number of threads it uses now.

    OpenBLAS is called with the interpreter's lock: to release it costs more than all the rest if
    another thread takes it.
    """
    found = []
    for each in ThreadpoolController().select(user_api="blas").lib_controllers:
        library = ctypes.PyDLL(each.filepath)
        known = [getattr(library, name, None) for name in _THREAD_COUNTS]
        found.append(next(filter(None, known), each.get_num_threads))
    return found


def _address(library: ctypes.CDLL, name: str) -> int:
    """The address of a function; 0 if there is none."""
    function = getattr(library, name, None)
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0


_LETTERS: dict[str, Any] = {
    "e": ir.IntType(32),  # an enum of C
    "f": ir.FloatType(),
    "p": ir.FloatType().as_pointer(),
}


def _call(builder: Any, address: Any, letters: str, bits: int, args: Any) -> None:
    """Call a C function of these arguments: enums, floats, pointers and `n`umbers of `bits`."""
    wanted = {**_LETTERS, "n": ir.IntType(bits)}
    function = ir.FunctionType(ir.VoidType(), [wanted[letter] for letter in letters])
    given = []
    for letter, value in zip(letters, args, strict=True):
        if letter == "p":
            value = builder.inttoptr(value, wanted["p"])
        elif letter == "e" or (letter == "n" and bits < 64):
            value = builder.trunc(value, wanted[letter])
        given.append(value)
    builder.call(builder.inttoptr(address, function.as_pointer()), given)


def _calling(letters: str) -> Any:
    """Generates a call whose first arguments are the address and the bits of integers."""
    kinds = [types.float32 if letter == "f" else types.int64 for letter in letters]

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address, bits, *rest = args
        wide = builder.icmp_signed("==", bits, ir.IntType(64)(64))
        with builder.if_else(wide) as (then, otherwise):
            with then:
                _call(builder, address, letters, 64, rest)
            with otherwise:
                _call(builder, address, letters, 32, rest)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, *kinds), generate


def _gemm(
    typing_context: Any, address: Any, bits: Any, order: Any, transpose_x: Any, transpose_y: Any,
    m: Any, n: Any, k: Any, alpha: Any, x: Any, x_stride: Any, y: Any, y_stride: Any,
    beta: Any, out: Any, out_stride: Any,
) -> Any:  # fmt: skip
    """`gemm(…)`: out (m, n) = alpha · x (m, k) · y (k, n) + beta · out; pointers as int64."""
    return _calling("eeennnfpnpnfpn")


def _gemv(
    typing_context: Any, address: Any, bits: Any, order: Any, transpose: Any, m: Any, n: Any,
    alpha: Any, a: Any, a_stride: Any, x: Any, x_step: Any, beta: Any, out: Any, out_step: Any,
) -> Any:  # fmt: skip
    """`gemv(…)`: out = alpha · a (m, n) · x + beta · out, a transposed by `transpose`."""
    return _calling("eennfpnpnfpn")


gemm: Any = intrinsic(_gemm)
gemv: Any = intrinsic(_gemv)
