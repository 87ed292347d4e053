"""Layers that repeat others. In reading order:

repeated_layers  the layers of one turn or step, while they are written
recurrences  a step for each element of the examples
loops        turns as long as a condition holds, and the arrays that they fill
branches     of two groups of layers one is computed, by a condition
list_arrays  arrays whose elements differ in rows
beams        beam search
"""

from psrt.graph.layers.repeating.beams import beam_search, beam_search_decode
from psrt.graph.layers.repeating.branches import Branches, cond
from psrt.graph.layers.repeating.list_arrays import create_lists, list_count, list_read, list_write
from psrt.graph.layers.repeating.loops import (
    Loop,
    array_length,
    array_read,
    array_write,
    create_array,
    undefined,
    while_loop,
)
from psrt.graph.layers.repeating.recurrences import Recurrence, dynamic_gru, dynamic_lstm

__all__ = [
    "Branches",
    "Loop",
    "Recurrence",
    "array_length",
    "array_read",
    "array_write",
    "create_array",
]
__all__ += [
    "beam_search",
    "beam_search_decode",
    "cond",
    "create_lists",
    "list_count",
    "list_read",
    "list_write",
]
__all__ += ["dynamic_gru", "dynamic_lstm", "undefined", "while_loop"]
