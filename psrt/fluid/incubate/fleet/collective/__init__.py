"""`fleet` without servers: workers reduce gradients among themselves, and each updates everything.

    fleet.init(role_maker.PaddleCloudRoleMaker(is_collective=True))
    fleet.distributed_optimizer(optimizer, strategy).minimize(loss)
    exe.run(fleet.startup_program)
    exe.run(fleet.main_program, feed, [loss])
    fleet.stop_worker()

A worker meets the others at its first step. Settings of a `DistributedStrategy` about GPUs have no
effect: torch.distributed chooses how gradients travel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from psrt.core.attributes import DeclaredAttributes
from psrt.core.errors import ConfigError, ProgramError
from psrt.executor.strategies import ExecutionStrategy
from psrt.fluid.framework import FluidProgram, default_startup_program
from psrt.fluid.incubate.fleet.base.role_maker import PaddleCloudRoleMaker, RoleMakerBase
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler import DistributedTranspiler
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler.transpiler_optimizer import (
    ProgramPair,
    check_optimizer,
)
from psrt.fluid.names import Variable
from psrt.fluid.transpiler import DistributeTranspilerConfig, FluidTranspiler
from psrt.fluid.updates import Optimizer

__all__ = ["CollectiveFleet", "CollectiveOptimizer", "CollectiveStrategy", "fleet"]
__all__ += ["Collective", "DistributedStrategy"]


@dataclass
class CollectiveStrategy(DeclaredAttributes):
    """Settings by Fluid's names; raises for an unknown name, and for steps without the others."""

    mode: str = "nccl2"
    collective_mode: str | None = None
    nccl_comm_num: int = 1
    use_hierarchical_allreduce: bool = False
    hierarchical_allreduce_inter_nranks: int = 0
    fuse_all_reduce_ops: bool | None = None
    use_local_sgd: bool = False
    use_dgc: bool = False
    forward_recompute: bool = False
    exec_strategy: ExecutionStrategy = field(default_factory=ExecutionStrategy)

    def config(self) -> DistributeTranspilerConfig:
        """Return the transpiler's settings; raises `ConfigError` for what psrt does not have."""
        local = self.use_local_sgd or self.collective_mode == "local_sgd"
        for is_asked, what in ((local, "local SGD"), (self.use_dgc, "DGC")):
            if is_asked:
                raise ConfigError(
                    f"the strategy asks for {what}, which fleet.collective of psrt does not have.",
                    hint="Reduce gradients at every step, or train by Geo with pservers.",
                )
        config = DistributeTranspilerConfig()
        config.mode = self.mode
        return config


class CollectiveOptimizer:
    """An optimizer of a group; `minimize` passes the programs that it makes to `on_parts`."""

    def __init__(
        self,
        optimizer: Optimizer,
        strategy: CollectiveStrategy | None = None,
        role: RoleMakerBase | None = None,
        on_parts: Callable[[ProgramPair], None] | None = None,
    ) -> None:
        check_optimizer(optimizer)
        if strategy is not None and not isinstance(strategy, CollectiveStrategy):
            raise ConfigError(
                f"distributed_optimizer was given a {type(strategy).__name__} as its strategy.",
                hint="Use DistributedStrategy() of fleet.collective.",
            )
        self._optimizer = optimizer
        self._config = (strategy or CollectiveStrategy()).config()
        self._role = role
        self._on_parts = on_parts or fleet._take

    def minimize(
        self,
        loss: Variable,
        startup_program: FluidProgram | None = None,
        parameter_list: Sequence[str | Variable] | None = None,
        no_grad_set: Sequence[str | Variable] | None = None,
    ) -> tuple[Any, Any]:
        """Call the optimizer's `minimize`, then make the program that of a worker of the group."""
        made = self._optimizer.minimize(loss, startup_program, parameter_list, no_grad_set)
        program, role = loss.program, self._role or fleet._known
        assert isinstance(program, FluidProgram)
        endpoints = role.get_trainer_endpoints()
        transpiler = FluidTranspiler(self._config)
        transpiler.transpile_group(role.worker_index(), program, endpoints, role.worker_num())
        startup = startup_program or default_startup_program()
        self._on_parts(ProgramPair(program, startup))
        return made


class CollectiveFleet(DistributedTranspiler):
    """The class of `fleet`: every process is a worker."""

    def init(self, role_maker: RoleMakerBase | None = None) -> None:
        """Determine the number of this worker, by default from the launcher's variables.

        Raises `ConfigError` for a missing or wrong variable, and for a role maker of pservers.
        """
        super().init(PaddleCloudRoleMaker(is_collective=True) if role_maker is None else role_maker)
        if not self._known.cluster_role.is_collective:
            self._role = None
            raise ConfigError(
                "fleet.collective was given a role maker for servers and workers.",
                hint="Use PaddleCloudRoleMaker(is_collective=True) or "
                "UserDefinedCollectiveRoleMaker(current_id, worker_endpoints).",
            )

    def distributed_optimizer(  # type: ignore[override]  # as in Fluid, another optimizer
        self, optimizer: Optimizer, strategy: CollectiveStrategy | None = None
    ) -> CollectiveOptimizer:
        """Return `optimizer` with a `minimize` that makes the program that of this worker.

        Raises `ConfigError` for another kind of strategy or optimizer.
        """
        return CollectiveOptimizer(optimizer, strategy, self._known, self._take)

    def init_server(self, model_dir: str | None = None) -> NoReturn:
        """Raise `ProgramError`: there are no servers."""
        raise ProgramError("fleet.collective has no servers: every process is a worker.")

    def run_server(self) -> NoReturn:
        """Raise `ProgramError`: there are no servers."""
        self.init_server()


fleet = CollectiveFleet()
Collective, DistributedStrategy = CollectiveFleet, CollectiveStrategy  # names in PaddlePaddle
