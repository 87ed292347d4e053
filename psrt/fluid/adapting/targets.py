"""Vars that a layer is given to write, and values of one element an example beside whole ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from psrt.fluid.framework import FluidProgram, default_main_program
from psrt.fluid.names import Variable
from psrt.graph import layers as psrt_layers
from psrt.graph.ops import ROWS


def assign_to(target: Variable, made: Variable) -> Variable:
    """Let `target` have the value of `made` from here on; returns `target`.

    A var that outlives steps is written; any other name stands for the new var.
    """
    program = made.program
    assert isinstance(program, FluidProgram)
    name = program.current(target.name)
    if name in program.graph.vars and program.graph.vars[name].kind == "state":
        if made.var.dtype != target.var.dtype:
            made = program.call(psrt_layers.cast, made, target.var.dtype)
        program.call(psrt_layers.set_state, target, made)
        return target
    return program.assign(target, made)


def in_rows(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments whose ragged vars are plain rows, if others have rows of examples.

    Fluid joins them without a look at their lengths; here a step refuses lists of other than one.
    """
    found = [var for value in given.values() for var in _variables(value)]
    ragged = any(var.var.ragged for var in found)
    rows = any(not var.var.ragged and var.var.shape[:1] == (ROWS,) for var in found)
    if not (ragged and rows):
        return dict(given)
    return {name: _as_rows(value) for name, value in given.items()}


def _variables(value: Any) -> Iterator[Variable]:
    if isinstance(value, Variable):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _variables(item)


def _as_rows(value: Any) -> Any:
    if isinstance(value, Variable) and value.var.ragged:
        return default_main_program().call(psrt_layers.sequence_rows, value)
    if isinstance(value, list | tuple):
        return [_as_rows(item) for item in value]
    return value


__all__ = ["assign_to", "in_rows"]
