"""Declarations of a parameter: what layers accept as `param_attr`. In reading order:

param_attr   `ParamAttr`, and psrt's declarations of it
initializer  initial values
regularizer  decay of weights
entry_attr   admission of ids to a sparse table
"""

from psrt.fluid.parameters import entry_attr, initializer, regularizer
from psrt.fluid.parameters.entry_attr import (
    CountFilterEntry,
    ProbabilityEntry,
    ShowClickEntry,
    admission_of,
)
from psrt.fluid.parameters.param_attr import Given, NumpyArrayInitializer, ParamAttr, attr_of

__all__ = [
    "CountFilterEntry",
    "Given",
    "NumpyArrayInitializer",
    "ParamAttr",
    "ProbabilityEntry",
    "ShowClickEntry",
    "admission_of",
    "attr_of",
    "entry_attr",
    "initializer",
    "regularizer",
]
