"""Distributed tables of a program without pservers, which this process holds as a whole.

In Fluid `is_distributed` has an effect once a program is transpiled. Until then the table is a var
of its declared height.
"""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import replace

from psrt.fluid.framework import FluidProgram
from psrt.graph.program import Parameter
from psrt.graph.program import Program as Graph

MOST_BYTES = 4 << 30
"""Memory of the largest table that one process holds: heights such as 2^40 are no sizes."""


def is_holdable(parameter: Parameter) -> bool:
    """Return whether one process can hold a parameter: all but distributed tables of 4 GiB."""
    return not parameter.distributed or math.prod(parameter.shape) * 4 <= MOST_BYTES


def is_held(program: FluidProgram, name: str, scope: Container[str]) -> bool:
    """Return whether `scope` holds the rows of a table, so that no pserver and no file does."""
    served = program.origin.job or program.origin.connection or program.rows_from
    return served is None and name in scope


def whole_graph(program: FluidProgram, scope: Container[str]) -> Graph:
    """Return the graph of `program`, where distributed tables that `scope` holds are whole ones."""
    held = {
        name: replace(parameter, distributed=False)
        for name, parameter in program.graph.parameters.items()
        if parameter.distributed and is_held(program, name, scope)
    }
    if not held:
        return program.graph
    graph = program.graph.clone()
    graph.parameters.update(held)
    return graph
