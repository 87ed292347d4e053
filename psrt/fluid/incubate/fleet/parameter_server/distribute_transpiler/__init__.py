"""`fleet` under the path that programs of Fluid import it from, and the names next to it."""

from __future__ import annotations

from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_transpiler import (  # noqa: E501
    DistributedTranspiler,
    fleet,
)
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler.transpiler_optimizer import (
    TranspilerOptimizer,
)

__all__ = ["DistributedTranspiler", "TranspilerOptimizer", "fleet"]
