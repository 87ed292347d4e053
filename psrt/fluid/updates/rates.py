"""Learning rates in every form that an optimizer takes."""

from __future__ import annotations

import dataclasses
from typing import TypeAlias

from psrt.core.errors import ProgramError
from psrt.core.specs import ComputedRate, LearningRate
from psrt.fluid.names import Variable
from psrt.graph.ops import ROWS

Rate: TypeAlias = float | LearningRate | Variable


def rate_of(given: Rate) -> float | LearningRate:
    """Return the rate as psrt takes it; a var is read in every step, a data var is fed.

    Raises `ProgramError` for a var that is not one float.
    """
    if not isinstance(given, Variable):
        return given
    if given.var.kind == "data" and given.shape == (ROWS,):  # declared as [1]: no batch
        graph = given.program.graph
        graph.vars[given.var.name] = dataclasses.replace(given.var, shape=(1,))
    if given.shape != (1,) or not given.var.type.is_float:
        raise ProgramError(
            f"The learning rate {given!r} is not one float.",
            hint="Make it one: layers.create_global_var([1], 0.1, 'float32', persistable=True).",
        )
    return ComputedRate(given.var.name, given.var.initial)


__all__ = ["Rate", "rate_of"]
