"""Vars of lod_level 2, lists of lists, and the layers for which outer lists differ from inner ones.

Such a var is fed as two: its elements by outer list, and the lengths of the inner lists. Its name
stands for the inner lists, which `psrt.layers.sequence_nest` makes of both.
"""

from __future__ import annotations

from typing import Any

from psrt.core.errors import ProgramError
from psrt.fluid.framework import default_main_program
from psrt.fluid.names import Variable
from psrt.graph import layers as psrt_layers
from psrt.graph.derived import lengths_name, outer_lists


def declare_nested(fed: Variable) -> Variable:
    """Let a data var of lists have lists of lists; returns it."""
    program = default_main_program()
    lengths = _called(psrt_layers.data, lengths_name(fed.name), (1,), "int64", True)
    inner = _called(psrt_layers.sequence_nest, fed, lengths)
    program.lod_levels[fed.name] = 2
    return program.assign(fed, inner)


def fed_lists(ids: Variable) -> tuple[Any, Any]:
    """Return the elements of a fed var by outer list, and the lengths of its inner lists.

    Another var is returned as it is, with None. Rows of fed elements are looked up before a step.
    """
    graph, name = ids.program.graph, ids.var.name
    for op in graph.ops:
        if op.type == "sequence_nest" and name in op.writes():
            fed = op.inputs["input"][0]
            if graph.vars[fed].kind == "data":
                inputs = (graph.vars[op.inputs[slot][0]] for slot in ("input", "lengths"))
                elements, lengths = inputs
                return elements, lengths
    return ids, None


def outer_of(x: Variable) -> Variable | None:
    """Return the var with an element for each list of x; None if x has one level of lists."""
    name = outer_lists(x.program.graph, x.var.name) if x.var.ragged else ""
    return default_main_program().variable(name) if name else None


def sequence_pool(
    input: Variable, pool_type: str, is_test: bool = False, pad_value: float = 0.0
) -> Variable:
    """Pool each innermost list to one row, 0 for an empty one: ragged (n, width) → (rows, width).

    The rows of lists of lists are lists again. `pool_type` is sum, average, sqrt, max, first or
    last.
    """
    if pad_value:
        raise ProgramError(f"layers.sequence_pool was given pad_value {pad_value}; psrt has 0.")
    return _in_outer(input, _called(psrt_layers.sequence_pool, input, pool_type.lower()))


def sequence_first_step(input: Variable, name: str | None = None) -> Variable:
    """First row of each innermost list, as `sequence_pool` returns it."""
    return _in_outer(input, _called(psrt_layers.sequence_first_step, input))


def sequence_last_step(input: Variable, name: str | None = None) -> Variable:
    """Last row of each innermost list, as `sequence_pool` returns it."""
    return _in_outer(input, _called(psrt_layers.sequence_last_step, input))


def sequence_expand(
    x: Variable, y: Variable, ref_level: int = -1, name: str | None = None
) -> Variable:
    """Repeat row i of x, or its list i, for every element of list i of y.

    `ref_level` 0 of lists of lists counts the outer lists of y, whose elements are its inner ones;
    1 and −1 count the inner ones. Raises `ProgramError` for a level that y has not.
    """
    outer = outer_of(y)
    levels = [y] if outer is None else [outer, y]
    if not -1 <= ref_level < len(levels):
        raise ProgramError(
            f"layers.sequence_expand was given ref_level {ref_level} of {y!r}, which has "
            f"{len(levels)}."
        )
    repeat = psrt_layers.sequence_repeat if x.var.ragged else psrt_layers.sequence_expand
    made: Variable = default_main_program().call(
        repeat, x, levels[ref_level], layer_name=name or ""
    )
    return made


def _in_outer(input: Variable, pooled: Variable) -> Variable:
    outer = outer_of(input)
    return pooled if outer is None else _called(psrt_layers.sequence_regroup, pooled, outer)


def _called(function: Any, *args: Any) -> Variable:
    made: Variable = default_main_program().call(function, *args)
    return made


__all__ = ["sequence_expand", "sequence_first_step", "sequence_last_step", "sequence_pool"]
