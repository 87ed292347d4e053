"""Arrays of tensors: `array_write`, `array_read` and what goes with them.

Elements of one shape lie along a dimension of their own, the second one behind the examples, else
the first. An array that a layer writes lists into has rows of any number in each element instead;
where its first element has lists, two more arrays have their lengths, by level.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from psrt.core.errors import ProgramError
from psrt.fluid.adapting.nested import outer_of
from psrt.fluid.adapting.targets import begun_outside, plain_condition
from psrt.fluid.framework import FluidProgram, default_main_program
from psrt.fluid.names import Variable, dtype_name, unique_name
from psrt.graph import layers as psrt_layers
from psrt.graph.ops import ROWS
from psrt.graph.program import Op

_INNER, _OUTER = "@INNER", "@OUTER"
"""Arrays beside one: the lengths of the lists of each element, and the numbers of these lists."""

_OF_LISTS = {
    "empty": "empty_lists",
    "array_write": "list_write",
    "array_read": "list_read",
    "array_length": "list_count",
}


def create_array(dtype: Any) -> Variable:
    """Return an array without elements, for `array_write`."""
    return default_main_program().tensor(dtype_name(dtype), unique_name.generate("array"))


def array_write(x: Variable, i: Variable, array: Variable | None = None) -> Variable:
    """Write `x` as element `i`, one int64 number, of `array` or a new one; returns the array.

    Elements that are missing before it are 0, or have no rows. The lists of `x` are kept where the
    first element has such.
    """
    program = default_main_program()
    if array is None:
        array = create_array(x.dtype)
    if program.current(array.name) not in program.graph.vars:
        _begin(program, array, x)
    elif x.var.ragged and not array.var.ragged:
        _become_lists(program, array)
    levels = _levels(x)
    for suffix in (_INNER, _OUTER):
        if array.name + suffix in program.tensors:
            if suffix not in levels:
                raise ProgramError(
                    f"layers.array_write was given {x!r}; the first element of {array.name} has "
                    "lists of more levels.",
                    hint="Give it those of another var: layers.lod_reset(x, y).",
                )
            _write(program, levels[suffix], i, program.variable(array.name + suffix))
    return _write(program, x, i, array)


def array_read(array: Variable, i: Variable) -> Variable:
    """Return element `i` of `array`; a step fails for one that does not exist."""
    if not array.var.ragged:
        return _called(psrt_layers.array_read, array, i)
    rows = _called(psrt_layers.list_read, array, i)
    lengths, counts = (part and _called(psrt_layers.list_read, part, i) for part in parts_of(array))
    if counts is not None:
        lengths = _called(psrt_layers.sequence_nest, lengths, counts)
    return rows if lengths is None else _called(psrt_layers.sequence_nest, rows, lengths)


def array_length(array: Variable) -> Variable:
    """Return the number of elements, int64 (1,)."""
    count = psrt_layers.list_count if array.var.ragged else psrt_layers.array_length
    return _called(count, array)


def parts_of(array: Variable) -> tuple[Variable | None, Variable | None]:
    """Return the arrays of the lengths of lists, and of their numbers in outer lists, if any."""
    program = default_main_program()
    names = (array.name + suffix for suffix in (_INNER, _OUTER))
    inner, outer = (program.variable(n) if n in program.tensors else None for n in names)
    return inner, outer


def _begin(program: FluidProgram, array: Variable, x: Variable) -> None:
    """Let an array begin without elements, before all loops around it."""
    if not x.var.ragged:
        begun_outside(array, lambda: program.call(psrt_layers.create_array, x.var.shape, x.dtype))
        return
    shape = x.var.shape[1:]
    begun_outside(array, lambda: program.call(psrt_layers.create_lists, shape, x.dtype))
    for suffix in _levels(x):
        part = program.tensor("int64", array.name + suffix)
        begun_outside(part, lambda: program.call(psrt_layers.create_lists, (), "int64"))


def _levels(x: Variable) -> dict[str, Variable]:
    """The lengths of the lists of x, and the numbers of these lists in outer lists."""
    if not x.var.ragged:
        return {}
    found = {_INNER: _called(psrt_layers.sequence_lengths, x)}
    outer = outer_of(x)
    if outer is not None:
        found[_OUTER] = _called(psrt_layers.sequence_lengths, outer)
    return found


def _write(program: FluidProgram, x: Variable, i: Variable, array: Variable) -> Variable:
    guard = [plain_condition(condition) for condition in program.guards[-1:]]
    write = psrt_layers.list_write if array.var.ragged else psrt_layers.array_write
    return program.assign(array, program.call(write, x, i, array, *guard))


def _become_lists(program: FluidProgram, array: Variable) -> None:
    """Give the elements of an array rows of any number: its vars and ops become those of lists."""
    graph, names = program.graph, {array.var.name}
    writes = [op for op in graph.ops if op.type == "array_write"]
    for op in [*writes, *reversed(writes)]:
        if not names.isdisjoint((*op.inputs["array"], *op.writes())):
            names.update((*op.inputs["array"], *op.writes()))
    rows = [graph.vars[name].shape for name in names]
    if any(shape[:1] != (ROWS,) for shape in rows):
        raise ProgramError(
            f"layers.array_write was given lists for {array!r}, whose elements have no rows."
        )
    for at, op in enumerate(graph.ops):
        if op.type in _OF_LISTS and not names.isdisjoint(
            (*op.inputs.get("array", ()), *op.writes())
        ):
            graph.ops[at] = _of_lists(op)
    for name in names:
        var = graph.vars[name]
        shape = (ROWS, *var.shape[2:])
        graph.vars[name] = dataclasses.replace(var, shape=shape, ragged=True)


def _of_lists(op: Op) -> Op:
    attrs = dict(op.attrs)
    if op.type == "empty":
        attrs["shape"] = attrs["shape"][2:]
    return dataclasses.replace(op, type=_OF_LISTS[op.type], attrs=attrs)


def _called(function: Any, *args: Any) -> Variable:
    made: Variable = default_main_program().call(function, *args)
    return made


__all__ = ["array_length", "array_read", "array_write", "create_array"]
