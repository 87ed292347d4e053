"""Names that all other files use. In reading order:

missing      errors for names that psrt does not have
unique_name  unique names of layers: one count for all programs, as Fluid keeps it
variable     Fluid's `Variable`: a user's handle of a var
places       places of programs: the CPU
"""

from psrt.fluid.names import unique_name
from psrt.fluid.names.missing import missing, refusing
from psrt.fluid.names.places import (
    CPUPlace,
    CUDAPinnedPlace,
    CUDAPlace,
    cpu_places,
    cuda_places,
    no_cuda,
)
from psrt.fluid.names.variable import FluidParameter, Variable, unwrapped

__all__ = ["CPUPlace", "CUDAPinnedPlace", "CUDAPlace", "FluidParameter", "Variable", "cpu_places"]
__all__ += ["cuda_places", "missing", "no_cuda", "refusing", "unique_name", "unwrapped"]
