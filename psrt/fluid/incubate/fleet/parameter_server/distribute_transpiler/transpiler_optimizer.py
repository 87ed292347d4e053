"""Optimizers of `fleet.distributed_optimizer`: `minimize` also makes the parts of the cluster.

`ProgramPair` holds those of one process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from psrt.core.errors import ConfigError
from psrt.fluid.framework import FluidProgram, default_startup_program
from psrt.fluid.incubate.fleet.base.role_maker import RoleMakerBase
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
    StrategyFactory,
    TranspilerStrategy,
    strategy_of,
)
from psrt.fluid.names import Variable
from psrt.fluid.transpiler import DistributeTranspilerConfig, FluidTranspiler
from psrt.fluid.updates import Optimizer

__all__ = ["ProgramPair", "TranspilerOptimizer"]


@dataclass(frozen=True)
class ProgramPair:
    """The main and the startup program of one process."""

    main: FluidProgram
    startup: FluidProgram


class TranspilerOptimizer:
    """An optimizer of a cluster; `minimize` passes the programs it makes to `on_parts`.

    `fleet.distributed_optimizer` makes one with the role of this process. Without a role it trains
    no cluster.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        strategy: TranspilerStrategy | DistributeTranspilerConfig | None = None,
        role: RoleMakerBase | None = None,
        on_parts: Callable[[ProgramPair], None] | None = None,
    ) -> None:
        check_optimizer(optimizer)
        self._optimizer, self._strategy = optimizer, _strategy(strategy)
        self._role, self._on_parts = role, on_parts

    def minimize(
        self,
        loss: Variable,
        startup_program: FluidProgram | None = None,
        parameter_list: Sequence[str | Variable] | None = None,
        no_grad_set: Sequence[str | Variable] | None = None,
    ) -> tuple[Any, Any]:
        """Call the optimizer's `minimize`, then cut the program into the cluster's parts.

        Raises `ConfigError` without a role, for a loss that is no variable, and for a startup
        program that is no program.
        """
        if self._role is None or self._on_parts is None:
            raise ConfigError(
                "minimize was called on an optimizer of a cluster without a role.",
                hint="Make it with fleet.distributed_optimizer(optimizer, strategy).",
            )
        made = self._optimizer.minimize(loss, startup_program, parameter_list, no_grad_set)
        program = loss.program
        assert isinstance(program, FluidProgram)
        self._on_parts(parts_of(program, startup_program, self._strategy, self._role))
        return made


def check_optimizer(given: object) -> None:
    """Raise `ConfigError` for what is no optimizer of `fluid.optimizer`."""
    if not isinstance(given, Optimizer):
        raise ConfigError(
            f"distributed_optimizer was given a {type(given).__name__}.",
            hint="Give an optimizer of fluid.optimizer.",
        )


def parts_of(
    program: FluidProgram,
    startup: FluidProgram | None,
    strategy: TranspilerStrategy,
    role: RoleMakerBase,
) -> ProgramPair:
    """Return the programs of a process with `role`, from a program that has its updates.

    Workers without servers reduce gradients among themselves, whatever the strategy.
    """
    mode = strategy.settled()
    transpiler = FluidTranspiler(strategy.get_program_config())
    if role.cluster_role.is_collective:
        endpoints, trainers = role.get_trainer_endpoints(), role.worker_num()
        transpiler.transpile_group(role.worker_index(), program, endpoints, trainers)
        return ProgramPair(program, startup or default_startup_program())
    transpiler.transpile(
        role.worker_index() if role.is_worker() else 0,
        program,
        ",".join(role.get_pserver_endpoints()),
        role.worker_num(),
        startup_program=startup,
        mode=mode,
    )
    if role.is_server():
        return ProgramPair(*transpiler.get_pserver_programs(role.cluster_role.current_endpoint))
    program.call_timeout_s = strategy.get_trainer_runtime_config().call_timeout_s
    return ProgramPair(program, startup or default_startup_program())


def _strategy(given: TranspilerStrategy | DistributeTranspilerConfig | None) -> TranspilerStrategy:
    if given is None:
        return StrategyFactory.create_sync_strategy()
    if isinstance(given, DistributeTranspilerConfig):
        return strategy_of(given)
    if isinstance(given, TranspilerStrategy):
        return given
    raise ConfigError(
        f"distributed_optimizer was given a {type(given).__name__} as its strategy.",
        hint="Make one with DistributedStrategyFactory.create_sync_strategy() or another of its "
        "functions.",
    )
