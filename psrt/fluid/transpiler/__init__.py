"""Fluid's transpilers. In reading order:

memory                 `memory_optimize`: vars of a step share memory
distribute_transpiler  Fluid's `DistributeTranspiler`, over `psrt.partition.transpiler`
"""

from psrt.fluid.transpiler.distribute_transpiler import (
    DistributeTranspiler,
    DistributeTranspilerConfig,
    FluidTranspiler,
    HashName,
    PSDispatcher,
    RoundRobin,
)
from psrt.fluid.transpiler.memory import memory_optimize, release_memory

__all__ = ["DistributeTranspiler", "DistributeTranspilerConfig", "FluidTranspiler", "HashName"]
__all__ += ["PSDispatcher", "RoundRobin", "memory_optimize", "release_memory"]
