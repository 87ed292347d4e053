"""names: files in reading order.

missing      What is said of a name that Fluid has, or nobody has, and psrt has not
unique_name  Names that no other layer has: one count for all programs, as Fluid keeps it
variable     Fluid's `Variable`: a var of a program as users hold it, with operators that
             append ops
places       Where programs run: on the CPU
"""

from __future__ import annotations

from psrt.fluid.names import unique_name
from psrt.fluid.names.missing import missing, nearest, refused
from psrt.fluid.names.places import (
    CPUPlace,
    CUDAPinnedPlace,
    CUDAPlace,
    cpu_places,
    cuda_places,
    no_cuda,
)
from psrt.fluid.names.variable import FluidParameter, Variable, unwrapped

__all__ = [
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "FluidParameter",
    "Variable",
    "cpu_places",
    "cuda_places",
    "missing",
    "nearest",
    "no_cuda",
    "refused",
    "unique_name",
    "unwrapped",
]
