"""`DistributedStrategyFactory`, the name the documents of Fluid 1.7 use for `StrategyFactory`."""

from __future__ import annotations

from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
    StrategyFactory,
)

DistributedStrategyFactory = StrategyFactory

__all__ = ["DistributedStrategyFactory"]
