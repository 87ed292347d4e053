"""`fleet` by the names of the 2.x API: `import psrt.fluid.distributed.fleet as fleet`.

The cluster is that of `psrt.fluid.incubate.fleet`, which also has the names not defined here, so
`fleet.is_server()`, `fleet.run_server()` and others work under both paths.
"""

from __future__ import annotations

from typing import Any

from psrt.core.errors import ConfigError
from psrt.fluid.distributed.strategy import DistributedStrategy
from psrt.fluid.incubate.fleet.base.role_maker import (
    PaddleCloudRoleMaker,
    Role,
    RoleMakerBase,
    UserDefinedRoleMaker,
)
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler import (
    TranspilerOptimizer,
    fleet,
)
from psrt.fluid.updates import Optimizer


def init(role_maker: RoleMakerBase | None = None, is_collective: bool = False) -> None:
    """Determine the role of this process, by default from the launcher's variables.

    With `is_collective` there are no servers. Raises `ConfigError` for a missing or wrong variable.
    """
    fleet.init(role_maker or PaddleCloudRoleMaker(is_collective))


def distributed_optimizer(
    optimizer: Optimizer, strategy: DistributedStrategy | None = None
) -> TranspilerOptimizer:
    """Return `optimizer` with a `minimize` that also makes this process's part of the cluster.

    Sync without a strategy. Raises `ConfigError` for another kind of strategy or optimizer.
    """
    strategy = DistributedStrategy() if strategy is None else strategy
    if not isinstance(strategy, DistributedStrategy):
        raise ConfigError(
            f"distributed_optimizer was given a {type(strategy).__name__} as its strategy.",
            hint="Use fleet.DistributedStrategy().",
        )
    return fleet.distributed_optimizer(optimizer, strategy.settings)


def __getattr__(name: str) -> Any:
    return getattr(fleet, name)


__all__ = ["DistributedStrategy", "PaddleCloudRoleMaker", "Role", "UserDefinedRoleMaker"]
__all__ += ["distributed_optimizer", "init"]
