"""Eight bytes at any place of an array, read and written at once, in the order of the processor."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np import arrayobj

_fields_of: Any = arrayobj.make_array


def _address(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """The address of element `args[1]` of the array `args[0]`, as a pointer to eight bytes."""
    fields = _fields_of(signature.args[0])(context, builder, args[0])
    return builder.bitcast(builder.gep(fields.data, [args[1]]), ir.IntType(64).as_pointer())


def _eight_bytes(typing_context: Any, array: Any, at: Any) -> Any:
    """`eight_bytes(array, at)`: those from `array[at]` on as a uint64."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = builder.load(_address(context, builder, signature, args))
        word.align = 1
        return word

    return types.uint64(array, types.int64), generate


def _put_eight_bytes(typing_context: Any, array: Any, at: Any, value: Any) -> Any:
    """`put_eight_bytes(array, at, value)`: a uint64 to `array[at]` and behind it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _address(context, builder, signature, args)).align = 1
        return context.get_dummy_value()

    return types.void(array, types.int64, types.uint64), generate


eight_bytes: Any = intrinsic(_eight_bytes)
put_eight_bytes: Any = intrinsic(_put_eight_bytes)
