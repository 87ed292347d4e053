"""Declarations of parameters: what users give for one, as psrt's `Param`."""

from __future__ import annotations

from dataclasses import replace

from psrt.fluid.framework import default_main_program
from psrt.fluid.names import unique_name
from psrt.fluid.parameters import Given, NumpyArrayInitializer, ParamAttr
from psrt.graph.param import Param


def declared(attr: ParamAttr, default: Given | None = None) -> Param:
    """Return psrt's declaration; `default` is the initializer where none was given.

    A parameter that exists keeps its initial values: as in Fluid the first layer decides. One that
    begins with an array gets a name, by which the program keeps the array.
    """
    program = default_main_program()
    if attr.name in program.graph.parameters:
        return replace(attr.param(), initializer=None, seed=None)
    given = attr.initializer or default
    if isinstance(given, NumpyArrayInitializer):
        attr = replace(attr, name=attr.name or unique_name.generate("array_w"))
        program.initial_arrays[str(attr.name)] = given.array
    return attr.param(default)


__all__ = ["declared"]
