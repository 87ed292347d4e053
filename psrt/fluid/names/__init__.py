"""Names that all other files use. In reading order:

edges        parts of Fluid that psrt will not have
missing      errors for names that psrt does not have
arguments    arguments of a wrong type
unique_name  unique names of layers: one count for all programs, as Fluid keeps it
indexing     parts of a variable by index
dtypes       types of vars, and names of dtypes in every form
variable     Fluid's `Variable`: a user's handle of a var
structures   variables in lists, tuples and dicts
gradients    losses, and vars that are no parameters and get gradients
places       places of programs: the CPU
temporaries  Fluid's names of temporary vars
first_ops    ops of a startup program
flags        flags and versions that programs ask for
module_paths second paths of modules: `fluid.clip`, `paddle.fluid`
"""

from psrt.fluid.names import flags, unique_name
from psrt.fluid.names.arguments import (
    ArgumentTypeError,
    check_name,
    check_no_text,
    check_shape,
    check_sizes,
)
from psrt.fluid.names.dtypes import VarType, dtype_name, dtype_number, narrow_name
from psrt.fluid.names.edges import EDGES
from psrt.fluid.names.first_ops import first_ops
from psrt.fluid.names.flags import (
    FLUID_VERSION,
    get_flags,
    in_dygraph_mode,
    require_version,
    set_flags,
)
from psrt.fluid.names.gradients import differentiated, first_values, names_among, scalar
from psrt.fluid.names.missing import RefusingFleet, missing, refusing, refusing_class
from psrt.fluid.names.module_paths import ModulePaths
from psrt.fluid.names.places import (
    CPUPlace,
    CUDAPinnedPlace,
    CUDAPlace,
    Place,
    cpu_places,
    cuda_places,
    no_cuda,
)
from psrt.fluid.names.structures import in_structure, leaves
from psrt.fluid.names.temporaries import NamedVars, known_name
from psrt.fluid.names.unique_name import name_scope
from psrt.fluid.names.variable import (
    FluidParameter,
    Variable,
    grad_var_name,
    shown_shape,
    unwrapped,
)

__all__ = ["CPUPlace", "CUDAPinnedPlace", "CUDAPlace", "FluidParameter", "Variable", "cpu_places"]
__all__ += ["Place", "VarType", "dtype_number"]
__all__ += ["ArgumentTypeError", "check_name", "check_no_text", "check_shape", "check_sizes"]
__all__ += [
    "RefusingFleet",
    "cuda_places",
    "differentiated",
    "dtype_name",
    "first_ops",
    "first_values",
    "flags",
    "missing",
    "names_among",
    "narrow_name",
    "no_cuda",
    "refusing",
    "refusing_class",
    "scalar",
    "shown_shape",
    "unique_name",
    "unwrapped",
]
__all__ += [
    "EDGES",
    "FLUID_VERSION",
    "ModulePaths",
    "NamedVars",
    "get_flags",
    "grad_var_name",
    "in_dygraph_mode",
    "in_structure",
    "known_name",
    "leaves",
    "name_scope",
    "require_version",
    "set_flags",
]
