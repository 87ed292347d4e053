"""Layers of Fluid that are made of others, with Fluid's formulas. In reading order:

calls            calls of psrt's layers, which the others are made of
activations      activations
losses           losses, and labels for them
recurrent_units  one step of an LSTM and of gated recurrent units
shapes           elements in other shapes and orders, and products of them
lists            rows in lists of other lengths
number_vars      ranges, diagonals, sizes
checks           tests of all elements
printing         values that each step prints
"""

from psrt.fluid.adapting.composed import (
    activations,
    checks,
    lists,
    losses,
    number_vars,
    printing,
    recurrent_units,
    shapes,
)

ROOMS = activations, losses, recurrent_units, shapes, lists, number_vars, checks, printing
"""Modules whose `__all__` are layers."""

__all__ = ["ROOMS"]
