"""Declarations of parameters: what users give for one, as psrt's `Param`."""

from __future__ import annotations

from dataclasses import replace

from psrt.fluid.framework import default_main_program
from psrt.fluid.param_attr import ParamAttr
from psrt.graph.initializer import AnyInitializer
from psrt.graph.param import Param


def declared(attr: ParamAttr, default: AnyInitializer | None = None) -> Param:
    """Return psrt's declaration; `default` is the initializer where none was given.

    A parameter that exists keeps its initializer: as in Fluid the first layer decides.
    """
    made = attr.param(default)
    known = default_main_program().graph.parameters
    return replace(made, initializer=None) if made.name in known else made


__all__ = ["declared"]
