"""Ops that repeat others. In reading order:

recurrences  a step for each element of the examples
loops        turns as long as a condition holds, and the arrays that they fill
list_arrays  arrays whose elements differ in rows
beams        beam search
nested_text  a turn within the text of a program
"""

from psrt.graph.ops.repeating import beams, list_arrays, recurrences
from psrt.graph.ops.repeating.loops import array_axis, array_shape
from psrt.graph.ops.repeating.nested_text import body_as_lines, body_as_text

__all__ = ["array_axis", "array_shape", "beams", "body_as_lines", "body_as_text"]
__all__ += ["list_arrays", "recurrences"]
