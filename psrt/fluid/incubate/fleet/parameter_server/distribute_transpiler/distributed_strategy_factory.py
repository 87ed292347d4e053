"""`DistributedStrategyFactory`, the name of `StrategyFactory` in the documents of Fluid 1.7."""

from __future__ import annotations

from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
    StrategyFactory,
)

DistributedStrategyFactory = StrategyFactory

__all__ = ["DistributedStrategyFactory"]
