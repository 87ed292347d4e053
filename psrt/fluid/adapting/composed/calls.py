"""Calls of psrt's layers with vars of Fluid, which the layers of this room are made of."""

from __future__ import annotations

from typing import Any

from psrt.fluid.adapting.adapter import adapted, signatures
from psrt.fluid.adapting.layer_table import SIGNATURES
from psrt.fluid.framework import default_main_program
from psrt.fluid.names import Variable
from psrt.graph import layers as psrt_layers

_TABLE = dict(signatures(SIGNATURES))


def called(function: Any, *args: Any) -> Variable:
    """Return the var that `function`, a layer of psrt with one result, makes of vars of Fluid."""
    made: Variable = default_main_program().call(function, *args)
    return made


def layer_of(name: str) -> Any:
    """Return the layer `name` of the table, with Fluid's arguments."""
    return adapted(name, _TABLE[name], getattr(psrt_layers, name))
