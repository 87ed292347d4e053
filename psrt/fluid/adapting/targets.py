"""Vars that a layer is given to write, and values of one element an example beside whole ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from psrt.fluid.framework import FluidProgram, default_main_program
from psrt.fluid.names import Variable
from psrt.graph import layers as psrt_layers
from psrt.graph.ops import ROWS


def assign_to(target: Variable, made: Variable) -> Variable:
    """Let `target` have the value of `made` from here on; returns `target`.

    A var that outlives steps is written; any other name stands for the new var. In a branch it has
    the new value only if the branch is taken.
    """
    program = made.program
    assert isinstance(program, FluidProgram)
    name = program.current(target.name)
    known = program.graph.vars.get(name)
    if known is not None and made.var.dtype != known.dtype:
        made = program.call(psrt_layers.cast, made, known.dtype)
    if known is not None and program.guards:
        made = where(program.guards[-1], made, program.variable(name))
    if known is not None and known.kind == "state":
        program.call(psrt_layers.set_state, target, made)
        return target
    return program.assign(target, made)


@contextmanager
def guarded(condition: Variable) -> Iterator[None]:
    """Let vars be written in the block only if the bool `condition` holds."""
    program = default_main_program()
    whole = plain_condition(condition)
    if program.guards:
        whole = program.call(psrt_layers.logical_and, program.guards[-1], whole)
    program.guards.append(whole)
    try:
        yield
    finally:
        program.guards.pop()


def where(condition: Variable, x: Variable, y: Variable) -> Variable:
    """Return x where `condition` holds, else y, in the shape of y."""
    program = default_main_program()
    if x.var.shape != y.var.shape and x.shape == y.shape:
        x = program.call(psrt_layers.reshape, x, y.var.shape)
    made: Variable = program.call(psrt_layers.where, plain_condition(condition), x, y)
    return made


def plain_condition(condition: Variable) -> Variable:
    """Return a condition of one element as a scalar, which fits all shapes."""
    if condition.var.shape != (1,):
        return condition
    made: Variable = default_main_program().call(psrt_layers.reshape, condition, ())
    return made


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


def with_dimensions(value: Any) -> Any:
    """Return scalars as users see them, of shape (1,), in lists, too; other values as they are."""
    if isinstance(value, Variable) and value.var.shape == ():
        return default_main_program().call(psrt_layers.reshape, value, (1,))
    if isinstance(value, list | tuple):
        return [with_dimensions(item) for item in value]
    return value


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


__all__ = ["assign_to", "guarded", "in_rows", "plain_condition", "where", "with_dimensions"]
