"""Strategies: a communication mode under Fluid's name, with its five sub-configs.

A strategy is made by `StrategyFactory` and changed by `get_…`, whose result may be changed in
place, or `set_…`, which takes a replacement or a dict of some fields. The flags that define its
mode (`sync_mode` and its companions in the program config) cannot be changed: `check_…` restores
them after each override and logs it; for another mode make another strategy.

`mode()` is psrt's communication mode: Fluid's Sync is `Sync`, and so on. The replicas of one
trainer average their gradients in every mode.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from psrt.config.load import cpu_num
from psrt.core.errors import ConfigError
from psrt.core.specs import Async, CommunicationMode, Geo, HalfAsync, Sync
from psrt.executor.strategies import BuildStrategy, ExecutionStrategy, ReduceStrategy
from psrt.fluid.transpiler import ServerRuntimeConfig, TrainerRuntimeConfig, overridden
from psrt.partition.transpiler_config import DistributeTranspilerConfig, mode_of

__all__ = ["AsyncStrategy", "DistributedStrategy", "GeoStrategy", "HalfAsyncStrategy"]
__all__ += ["StrategyFactory", "SyncStrategy", "TranspilerStrategy"]

log = logging.getLogger("psrt.fluid")


def _flags(**own: Any) -> Mapping[str, Any]:
    """Flags by which Fluid sets a mode, read by `mode_of`: those of Async, changed by `own`."""
    common = {
        "sync_mode": False,
        "runtime_split_send_recv": True,
        "half_async": False,
        "completely_not_async": False,
        "geo_sgd_mode": False,
    }
    return common | own


class TranspilerStrategy:
    """Base of the four strategies, Fluid's `DistributedStrategy`."""

    flags: Mapping[str, Any] = _flags()

    def __init__(self) -> None:
        self._program_config = DistributeTranspilerConfig()
        self._trainer_runtime_config = TrainerRuntimeConfig()
        self._server_runtime_config = ServerRuntimeConfig()
        self._execute_strategy = ExecutionStrategy(num_threads=cpu_num())
        self._build_strategy = BuildStrategy(async_mode=True)
        if cpu_num() > 1:
            self._build_strategy.reduce_strategy = ReduceStrategy.Reduce
        self._debug_opt: dict[str, Any] = {}
        self._force(log.debug)

    def mode(self) -> CommunicationMode:
        """Return psrt's communication mode."""
        return mode_of(self._program_config)

    def settled(self) -> CommunicationMode:
        """Return `mode()`, after checking changes that were made in place.

        Knobs that were turned and have no effect in the mode are logged, in one line.
        """
        self.check_program_config()
        mode = self.mode()
        idle = self._trainer_runtime_config.idle(mode) + list(self._server_runtime_config.turned())
        if idle:
            log.warning(
                "%s: no effect in psrt: %s (docs/reference/fleet.md explains why).",
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
        """Restore the flags that define the mode."""
        self._force(log.warning)

    def adopt(self, config: DistributeTranspilerConfig) -> None:
        """Take a config that means this mode, whatever its flags."""
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

    def set_debug_opt(self, opt_info: Mapping[str, Any] | None) -> None:
        """Keep what to dump of each batch, by Fluid's names; psrt dumps nothing, and logs so."""
        self._debug_opt = dict(opt_info or {})
        if self._debug_opt:
            log.warning(
                "%s: nothing is dumped (%s); fetch the vars instead.",
                type(self).__name__,
                ", ".join(self._debug_opt),
            )

    def get_debug_opt(self) -> dict[str, Any]:
        """Return what `set_debug_opt` was given."""
        return dict(self._debug_opt)

    def _force(self, log_line: Callable[..., None]) -> None:
        for name, value in self.flags.items():
            if (given := getattr(self._program_config, name)) != value:
                setattr(self._program_config, name, value)
                log_line("%s: %s is %s, not %s.", type(self).__name__, name, value, given)


DistributedStrategy = TranspilerStrategy  # its name in PaddlePaddle


class SyncStrategy(TranspilerStrategy):
    """Every step is one update by the mean gradient of all trainers."""

    flags = _flags(half_async=True, completely_not_async=True)


class HalfAsyncStrategy(TranspilerStrategy):
    """Replicas of one trainer synchronise at each step, trainers do not."""

    flags = _flags(half_async=True)


class AsyncStrategy(TranspilerStrategy):
    """No waiting: gradients queue on the trainer and are applied on arrival."""

    def mode(self) -> CommunicationMode:
        mode = super().mode()
        assert isinstance(mode, Async)
        return self._trainer_runtime_config.asynchronous(mode.dc_asgd)


class GeoStrategy(TranspilerStrategy):
    """Trainers train locally and exchange changes every `update_frequency` steps."""

    def __init__(self, update_frequency: int = 100) -> None:
        self.flags = _flags(geo_sgd_mode=True, geo_sgd_need_push_nums=update_frequency)
        super().__init__()


class StrategyFactory:
    """Factory of the four strategies."""

    @staticmethod
    def create_sync_strategy() -> SyncStrategy:
        """Return a strategy of mode Sync."""
        return SyncStrategy()

    @staticmethod
    def create_half_async_strategy() -> HalfAsyncStrategy:
        """Return a strategy of mode HalfAsync."""
        return HalfAsyncStrategy()

    @staticmethod
    def create_async_strategy() -> AsyncStrategy:
        """Return a strategy of mode Async."""
        return AsyncStrategy()

    @staticmethod
    def create_geo_strategy(update_frequency: int = 100) -> GeoStrategy:
        """Return a strategy of mode Geo; raises `ConfigError` unless the steps are 1 or more."""
        if type(update_frequency) is not int or update_frequency < 1:
            raise ConfigError(
                f"update_frequency is {update_frequency!r}, expected an integer, at least 1.",
                hint="It is the number of steps between two exchanges; 400 suits 16 threads.",
            )
        return GeoStrategy(update_frequency)


def strategy_of(config: DistributeTranspilerConfig) -> TranspilerStrategy:
    """Return the strategy of the mode that a config's flags mean, with that config."""
    classes = {Sync: SyncStrategy, HalfAsync: HalfAsyncStrategy, Async: AsyncStrategy}
    mode = mode_of(config)
    made = GeoStrategy(mode.update_frequency) if isinstance(mode, Geo) else classes[type(mode)]()
    made.adopt(config)
    return made
