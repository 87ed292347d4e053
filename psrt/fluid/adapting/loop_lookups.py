"""Rows of tables in the block of a loop.

Ids of a turn are known when the turn is computed, so rows cannot be fetched before the step: the
table is a dense parameter there, as if `is_sparse` were False.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psrt.core.errors import ProgramError
from psrt.fluid.adapting.declared import declared
from psrt.fluid.framework import default_main_program
from psrt.fluid.names import Variable
from psrt.fluid.parameters import ParamAttr
from psrt.graph import layers as psrt_layers
from psrt.graph.initializer import Xavier


def lookup_in_loop(
    input: Variable,
    size: Sequence[int],
    padding_idx: int | None,
    attr: ParamAttr,
    is_distributed: bool,
) -> Variable:
    """Return the row of each id: (rows, k) → (rows, k, width), ragged (n,) → (n, width).

    Raises `ProgramError` for a distributed table, and for one whose rows other layers fetch.
    """
    known = default_main_program().graph.parameters.get(attr.name or "")
    if is_distributed or (known is not None and known.sparse):
        raise ProgramError(
            f"layers.embedding looks {attr.name or 'a table'} up in a loop, where the rows of a "
            "sparse table are not fetched.",
            hint="Look it up before the loop, or leave is_sparse out wherever it is looked up.",
        )
    table = _called(psrt_layers.create_parameter, size, declared(attr, Xavier()))
    found = _called(psrt_layers.gather, table, input)
    if padding_idx is not None:
        found = found * _is_not(input, padding_idx % size[0])
    shape = input.var.shape
    if len(shape) > 1 and shape[-1] == 1:  # which `gather` leaves out
        return _called(psrt_layers.reshape, found, (*shape, size[1]))
    return found


def _is_not(ids: Variable, padding: int) -> Variable:
    """1 for each id that is not `padding`, else 0, in a shape that rows are multiplied by."""
    shape = ids.var.shape if ids.var.shape[-1:] == (1,) else (*ids.var.shape, 1)
    column = _called(psrt_layers.reshape, ids, shape)
    other = _called(psrt_layers.fill_constant, (1,), "int64", padding)
    differ = _called(psrt_layers.not_equal, column, other)
    return _called(psrt_layers.cast, differ, "float32")


def _called(function: Any, *args: Any) -> Variable:
    made: Variable = default_main_program().call(function, *args)
    return made


__all__ = ["lookup_in_loop"]
