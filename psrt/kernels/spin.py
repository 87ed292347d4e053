"""Waiting a moment for a change in memory, without the interpreter's lock.

Who looks for a change in Python holds the lock half of the time, and others who come back for it
are put to sleep: whoever waits would slow down those he waits for. Now and then the core is offered
to other threads: where there are fewer cores than threads, those he waits for may need it.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np import arrayobj

from psrt.core.types import I64
from psrt.kernels.jit import kernel

_fields_of: Any = arrayobj.make_array
_declared: Any = cgutils.get_or_insert_function


def _look(typing_context: Any, array: Any) -> Any:
    """`look(array)`: its first element as it is in memory now, whatever was read before."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        fields = _fields_of(signature.args[0])(context, builder, args[0])
        return builder.load_atomic(fields.data, "acquire", 8)

    return types.int64(array), generate


look: Any = intrinsic(_look)


def _yield_core(typing_context: Any) -> Any:
    """`yield_core()`: let another thread of this core run, if one is waiting (`sched_yield`)."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [])
        function = _declared(builder.module, kind, "sched_yield")
        return builder.call(function, [])

    return types.int32(), generate


yield_core: Any = intrinsic(_yield_core)

_LOOKS = 256  # between two offers: about as long as an offer takes


@kernel("const i8[::1], i8, i8 -> void", group="op")
def await_change(counter: I64, seen: int, offers: int) -> None:
    """Return once `counter` (1,) is not `seen` any more, or the core was offered so many times.

    One offer is about 1 µs, or a time slice of a thread that took it.
    """
    for _ in range(offers):
        for _ in range(_LOOKS):
            if look(counter) != seen:
                return
        yield_core()
