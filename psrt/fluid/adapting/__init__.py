"""adapting: files in reading order.

layer_table     The layers of Fluid 1.8 that psrt has, with Fluid's arguments in Fluid's order
adapter         From a signature of Fluid's and a layer function of psrt's to a layer function
                of Fluid's
written_layers  Layers of Fluid that are more than psrt's by other argument names
learning_rates  Schedules of the learning rate by Fluid's names, in `fluid.layers` as there
"""

from __future__ import annotations

from psrt.fluid.adapting import learning_rates, written_layers
from psrt.fluid.adapting.adapter import Layer, adapted, signature_like, signatures
from psrt.fluid.adapting.layer_table import ALIKE, INSTEAD, OWN, SIGNATURES
from psrt.fluid.adapting.written_layers import input_data, lookup

__all__ = [
    "ALIKE",
    "INSTEAD",
    "OWN",
    "SIGNATURES",
    "Layer",
    "adapted",
    "input_data",
    "learning_rates",
    "lookup",
    "signature_like",
    "signatures",
    "written_layers",
]
