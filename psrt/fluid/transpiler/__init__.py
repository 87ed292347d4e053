"""transpiler: files in reading order.

memory                 `memory_optimize`: vars of a step whose lives do not overlap share memory
distribute_transpiler  `DistributeTranspiler` with Fluid's signatures, over
                       `psrt.partition.transpiler`
"""

from __future__ import annotations

from psrt.fluid.transpiler.distribute_transpiler import (
    DistributeTranspiler,
    DistributeTranspilerConfig,
)

__all__ = ["DistributeTranspiler", "DistributeTranspilerConfig"]
