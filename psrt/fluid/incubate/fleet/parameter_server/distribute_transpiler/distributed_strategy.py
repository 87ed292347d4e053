"""Strategies: a communication mode under Fluid's name, with the five sub-configs it consists of.

A strategy is made by `StrategyFactory` and adjusted by `get_…`, whose result may be changed in
place, or `set_…`, which takes a replacement or a dict of some fields. What makes a strategy the one
it is (`sync_mode` and its companions in the program config) cannot be changed: `check_…` puts it
back after each override and says so in the log; for another mode make another strategy.

`mode()` is what all this means to psrt. Fluid's Sync is psrt's `Sync`, and so on; the replicas of
one trainer average their gradients in every mode.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from psrt.config.load import cpu_num
from psrt.core.errors import ConfigError
from psrt.core.specs import Async, CommunicationMode, Geo, HalfAsync, Sync
from psrt.executor.strategies import BuildStrategy, ExecutionStrategy, ReduceStrategy
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler.runtime_configs import (
    ServerRuntimeConfig,
    TrainerRuntimeConfig,
    overridden,
)
from psrt.partition.transpiler_config import DistributeTranspilerConfig, mode_of

log = logging.getLogger("psrt.fluid")


def _flags(**own: Any) -> Mapping[str, Any]:
    """The flags by which Fluid says a mode (`psrt.partition.transpiler_config.mode_of` reads them):
    those of Async, and what another strategy has differently."""
    common = {
        "sync_mode": False,
        "runtime_split_send_recv": True,
        "half_async": False,
        "completely_not_async": False,
        "geo_sgd_mode": False,
    }
    return common | own


class TranspilerStrategy:
    """The base of the four; it is none of them itself."""

    flags: Mapping[str, Any] = _flags()

    def __init__(self) -> None:
        self._program_config = DistributeTranspilerConfig()
        self._trainer_runtime_config = TrainerRuntimeConfig()
        self._server_runtime_config = ServerRuntimeConfig()
        self._execute_strategy = ExecutionStrategy(num_threads=cpu_num())
        self._build_strategy = BuildStrategy()
        if cpu_num() > 1:
            self._build_strategy.reduce_strategy = ReduceStrategy.Reduce
        self._force(log.debug)

    def mode(self) -> CommunicationMode:
        """The communication mode of psrt this strategy is."""
        return mode_of(self._program_config)

    def settled(self) -> CommunicationMode:
        """`mode()`, after changes that were made in place were checked like the others.

        Turned knobs that have no effect in the mode are logged, in one line.
        """
        self.check_program_config()
        mode = self.mode()
        idle = self._trainer_runtime_config.idle(mode) + list(self._server_runtime_config.turned())
        if idle:
            log.warning(
                "%s: no effect in psrt: %s (docs/reference/fleet.md says why).",
                type(self).__name__,
                ", ".join(idle),
            )
        return mode

    def get_program_config(self) -> DistributeTranspilerConfig:
        return self._program_config

    def set_program_config(self, config: DistributeTranspilerConfig | Mapping[str, Any]) -> None:
        self._program_config = overridden(self._program_config, config)
        self.check_program_config()

    def check_program_config(self) -> None:
        """Put back what makes the strategy what it is."""
        self._force(log.warning)

    def adopt(self, config: DistributeTranspilerConfig) -> None:
        """Take a config that means this mode, however it says so."""
        self._program_config = config
        self._force(log.debug)

    def get_trainer_runtime_config(self) -> TrainerRuntimeConfig:
        return self._trainer_runtime_config

    def set_trainer_runtime_config(self, config: TrainerRuntimeConfig | Mapping[str, Any]) -> None:
        self._trainer_runtime_config = overridden(self._trainer_runtime_config, config)

    def get_server_runtime_config(self) -> ServerRuntimeConfig:
        return self._server_runtime_config

    def set_server_runtime_config(self, config: ServerRuntimeConfig | Mapping[str, Any]) -> None:
        self._server_runtime_config = overridden(self._server_runtime_config, config)

    def get_execute_strategy(self) -> ExecutionStrategy:
        return self._execute_strategy

    def set_execute_strategy(self, config: ExecutionStrategy | Mapping[str, Any]) -> None:
        self._execute_strategy = overridden(self._execute_strategy, config)

    def get_build_strategy(self) -> BuildStrategy:
        return self._build_strategy

    def set_build_strategy(self, config: BuildStrategy | Mapping[str, Any]) -> None:
        self._build_strategy = overridden(self._build_strategy, config)

    def _force(self, say: Callable[..., None]) -> None:
        for name, value in self.flags.items():
            if (given := getattr(self._program_config, name)) != value:
                setattr(self._program_config, name, value)
                say("%s: %s is %s, not %s.", type(self).__name__, name, value, given)


DistributedStrategy = TranspilerStrategy  # its name in PaddlePaddle


class SyncStrategy(TranspilerStrategy):
    """Every step is one update by the mean gradient of all trainers."""

    flags = _flags(half_async=True, completely_not_async=True)


class HalfAsyncStrategy(TranspilerStrategy):
    """The replicas of one trainer meet at each step, trainers do not."""

    flags = _flags(half_async=True)


class AsyncStrategy(TranspilerStrategy):
    """Nobody waits: gradients queue up on the trainer and are applied on arrival."""

    def mode(self) -> CommunicationMode:
        mode = super().mode()
        assert isinstance(mode, Async)
        return self._trainer_runtime_config.asynchronous(mode.dc_asgd)


class GeoStrategy(TranspilerStrategy):
    """Trainers train on their own and exchange what changed every `update_frequency` steps."""

    def __init__(self, update_frequency: int = 100) -> None:
        self.flags = _flags(geo_sgd_mode=True, geo_sgd_need_push_nums=update_frequency)
        super().__init__()


class StrategyFactory:
    """Makes the four strategies."""

    @staticmethod
    def create_sync_strategy() -> SyncStrategy:
        return SyncStrategy()

    @staticmethod
    def create_half_async_strategy() -> HalfAsyncStrategy:
        return HalfAsyncStrategy()

    @staticmethod
    def create_async_strategy() -> AsyncStrategy:
        return AsyncStrategy()

    @staticmethod
    def create_geo_strategy(update_frequency: int = 100) -> GeoStrategy:
        """Refuses an `update_frequency` that is not a number of steps, at least 1."""
        if type(update_frequency) is not int or update_frequency < 1:
            raise ConfigError(
                f"update_frequency is {update_frequency!r}, expected an integer, at least 1.",
                hint="It is the number of steps between two exchanges; 400 suits 16 threads.",
            )
        return GeoStrategy(update_frequency)


def strategy_of(config: DistributeTranspilerConfig) -> TranspilerStrategy:
    """The strategy of the mode that a config means by its flags, with that config."""
    classes = {Sync: SyncStrategy, HalfAsync: HalfAsyncStrategy, Async: AsyncStrategy}
    mode = mode_of(config)
    made = GeoStrategy(mode.update_frequency) if isinstance(mode, Geo) else classes[type(mode)]()
    made.adopt(config)
    return made
