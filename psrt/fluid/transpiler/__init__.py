"""Fluid's transpilers. In reading order:

memory                 `memory_optimize`: vars of a step share memory
passes                 passes of a `BuildStrategy`
runtime_configs        runtime knobs of trainers and pservers
ps_dispatcher          dispatchers of blocks to pservers
distribute_transpiler  Fluid's `DistributeTranspiler`, over `psrt.partition.transpiler`
geo_sgd_transpiler     the one of mode Geo
"""

from psrt.fluid.transpiler.distribute_transpiler import (
    DistributedMode,
    DistributeTranspiler,
    DistributeTranspilerConfig,
    FluidTranspiler,
)
from psrt.fluid.transpiler.geo_sgd_transpiler import GeoSgdTranspiler
from psrt.fluid.transpiler.memory import memory_optimize, release_memory
from psrt.fluid.transpiler.passes import FluidBuildStrategy, drawn, joined_batches
from psrt.fluid.transpiler.ps_dispatcher import HashName, PSDispatcher, RoundRobin
from psrt.fluid.transpiler.runtime_configs import (
    EFFECTS,
    ServerRuntimeConfig,
    TrainerRuntimeConfig,
    overridden,
)

__all__ = ["EFFECTS", "DistributeTranspiler", "DistributeTranspilerConfig", "DistributedMode"]
__all__ += ["FluidBuildStrategy", "FluidTranspiler", "drawn", "joined_batches"]
__all__ += ["GeoSgdTranspiler", "HashName", "PSDispatcher", "RoundRobin", "ServerRuntimeConfig"]
__all__ += ["TrainerRuntimeConfig", "memory_optimize", "overridden", "release_memory"]
