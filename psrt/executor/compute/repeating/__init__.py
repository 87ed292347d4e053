"""Computations of what loops fill. In reading order:

arrays       arrays of tensors of one shape
list_arrays  arrays whose elements differ in rows
beams        beam search
"""

from psrt.executor.compute.repeating import arrays, beams, list_arrays

__all__ = ["arrays", "beams", "list_arrays"]
