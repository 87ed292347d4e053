"""psrt's layers under Fluid's signatures. In reading order:

layer_table     table of Fluid 1.8's layers that psrt has, with Fluid's arguments
declared        declarations of parameters
targets         vars that a layer is given to write, and lists beside whole examples
nested          lists of lists
loop_lookups    rows of tables in the block of a loop
sizes           sizes that a program takes from another var
steps_first     vars whose first dimension is a step
constants       constants and random numbers
adapter         layer functions with Fluid's signatures, computed by psrt's
written_layers  layers that need more than other argument names
tensors         vars that ops write, comparisons, conditions
branches        `cond`, `Switch` and their like: one of several groups of layers is taken
loops           `DynamicRNN` and `StaticRNN`
whiles          `While` and `while_loop`
arrays          arrays of tensors
beams           beam search
tagging         chains of tags
composed        layers made of others
readers         `py_reader` and what goes with it
learning_rates  schedules of the learning rate by Fluid's names
"""

from psrt.fluid.adapting import (
    arrays,
    beams,
    branches,
    composed,
    constants,
    learning_rates,
    loops,
    nested,
    readers,
    tagging,
    tensors,
    whiles,
    written_layers,
)
from psrt.fluid.adapting.adapter import Layer, adapted, bare, signature_like, signatures
from psrt.fluid.adapting.constants import one_hot_behind
from psrt.fluid.adapting.layer_table import ALIKE, INSTEAD, OWN, SIGNATURES
from psrt.fluid.adapting.targets import assign_to
from psrt.fluid.adapting.written_layers import input_data, lookup, parameter_in

__all__ = [
    "ALIKE",
    "INSTEAD",
    "OWN",
    "SIGNATURES",
    "Layer",
    "adapted",
    "arrays",
    "assign_to",
    "bare",
]
__all__ += ["input_data", "one_hot_behind"]
__all__ += [
    "beams",
    "branches",
    "composed",
    "constants",
    "learning_rates",
    "lookup",
    "loops",
    "nested",
    "parameter_in",
    "readers",
    "signature_like",
    "signatures",
    "tagging",
    "tensors",
    "whiles",
    "written_layers",
]
