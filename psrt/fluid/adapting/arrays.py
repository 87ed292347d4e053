"""Arrays of tensors: `array_write`, `array_read` and what goes with them.

The elements of an array have one shape. A fetched array has them along a dimension of its own, the
second one behind the examples, else the first.
"""

from __future__ import annotations

from typing import Any

from psrt.core.errors import ProgramError
from psrt.fluid.adapting.targets import begun_outside, plain_condition
from psrt.fluid.framework import default_main_program
from psrt.fluid.names import Variable, dtype_name, unique_name
from psrt.graph import layers as psrt_layers


def create_array(dtype: Any) -> Variable:
    """Return an array without elements, for `array_write`."""
    return default_main_program().tensor(dtype_name(dtype), unique_name.generate("array"))


def array_write(x: Variable, i: Variable, array: Variable | None = None) -> Variable:
    """Write `x` as element `i`, one int64 number, of `array` or a new one; returns the array.

    Elements that are missing before it are 0. Raises `ProgramError` for lists.
    """
    program = default_main_program()
    if x.var.ragged:
        raise ProgramError(
            f"layers.array_write was given {x!r}, lists; elements of arrays are plain rows.",
            hint="Reduce lists with layers.sequence_pool, or fill them up with sequence_pad.",
        )
    if array is None:
        array = create_array(x.dtype)
    if program.current(array.name) not in program.graph.vars:
        begun_outside(array, lambda: program.call(psrt_layers.create_array, x.var.shape, x.dtype))
    guard = [plain_condition(condition) for condition in program.guards[-1:]]
    made = program.call(psrt_layers.array_write, x, i, array, *guard)
    return program.assign(array, made)


def array_read(array: Variable, i: Variable) -> Variable:
    """Return element `i` of `array`; a step fails for one that does not exist."""
    made: Variable = default_main_program().call(psrt_layers.array_read, array, i)
    return made


def array_length(array: Variable) -> Variable:
    """Return the number of elements, int64 (1,)."""
    made: Variable = default_main_program().call(psrt_layers.array_length, array)
    return made


__all__ = ["array_length", "array_read", "array_write", "create_array"]
