"""Waiting a moment for a change in memory, without the interpreter's lock.

Who looks for a change in Python holds the lock half of the time, and others who come back for it
are put to sleep: whoever waits would slow down those he waits for.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic
from numba.np import arrayobj

from psrt.core.types import I64
from psrt.kernels.jit import kernel

_fields_of: Any = arrayobj.make_array


def _look(typing_context: Any, array: Any) -> Any:
    """`look(array)`: its first element as it is in memory now, whatever was read before."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        fields = _fields_of(signature.args[0])(context, builder, args[0])
        return builder.load_atomic(fields.data, "acquire", 8)

    return types.int64(array), generate


look: Any = intrinsic(_look)


@kernel("const i8[::1], i8, i8 -> void", group="op")
def await_change(counter: I64, seen: int, looks: int) -> None:
    """Return once `counter` (1,) is not `seen` any more, or after so many looks of 1 ns or so."""
    for _ in range(looks):
        if look(counter) != seen:
            return
