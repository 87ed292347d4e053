"""Losses as Fluid takes them, of shape (1,) too, and the gradients that a program asks for."""

from __future__ import annotations

from collections.abc import Iterable

from psrt.fluid.names.variable import Owner, Variable
from psrt.graph import layers
from psrt.graph.gradients import RULES
from psrt.graph.program import Var, gradient_name


def scalar(loss: Variable) -> Var:
    """Return the var of a loss: one of shape (1,) is summed, once."""
    if loss.var.shape != (1,) or loss.var.ragged:
        return loss.var
    graph = loss.program.graph
    reads = {"x": (loss.var.name,)}
    sums = [op for op in graph.ops if op.type == "reduce_sum" and op.inputs == reads]
    for made in (graph.vars[op.outputs["out"][0]] for op in sums):
        if made.shape == ():
            return made
    summed: Variable = loss.program.call(layers.reduce_sum, loss)
    return summed.var


def differentiated(program: Owner) -> list[str]:
    """Return vars whose `stop_gradient` was set False, and that have no gradient yet."""
    names = [var.var.name for var in program.list_vars() if var.wants_gradient]
    return [name for name in names if gradient_name(name) not in program.graph.vars]


def first_values(program: Owner) -> list[str]:
    """Return what ops compute from data, which has gradients where there are no parameters."""
    vars, made = program.graph.vars, []
    for op in program.graph.ops:
        if op.type in RULES and any(vars[name].kind == "data" for name in op.reads()):
            found = (vars[name] for name in op.writes())
            made += [var.name for var in found if var.type.is_float and not var.stop_gradient]
    return made


def names_among(vars: object) -> set[str]:
    """Return the names of variables and names; raises `TypeError` for others, as Fluid does."""
    if isinstance(vars, str) or not isinstance(vars, Iterable):
        raise TypeError(f"{vars!r} was given for a list or set of variables and names.")
    strangers = [var for var in vars if not isinstance(var, str | Variable)]
    if strangers:
        raise TypeError(f"{strangers[0]!r} was given among variables and names.")
    return {var if isinstance(var, str) else var.name for var in vars}


__all__ = ["differentiated", "first_values", "names_among", "scalar"]
