"""`DistributedStrategy` of the 2.x API: a mode set by `a_sync` and `k_steps`.

    a_sync = False                                Sync
    a_sync = True, k_steps = 0                    Async, with the other items of a_sync_configs
    a_sync = True, k_steps > 0                    Geo, an exchange every k_steps steps

`settings` is the equivalent strategy of Fluid 1.8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from psrt.core.attributes import DeclaredAttributes
from psrt.core.errors import ConfigError
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler import distributed_strategy
from psrt.fluid.transpiler import EFFECTS, overridden

__all__ = ["AsyncConfigs", "DistributedStrategy"]

_PREFIX = "communicator_"


@dataclass
class AsyncConfigs(DeclaredAttributes):
    """Items of `a_sync_configs`; those under "no effect" are of parts psrt does not have."""

    k_steps: int = 0
    max_merge_var_num: int = 1
    send_queue_size: int = 16
    independent_recv_thread: bool = False
    min_send_grad_num_before_recv: int = 1
    thread_pool_size: int = 1
    send_wait_times: int = 1
    # no effect
    runtime_split_send_recv: bool = False
    launch_barrier: bool = True
    heter_worker_device_guard: str = "cpu"
    lr_decay_steps: int = 10
    use_ps_gpu: int = 0


class DistributedStrategy:
    """Communication mode of a job; Sync unless `a_sync` is set."""

    def __init__(self) -> None:
        self.a_sync = False
        self._configs = AsyncConfigs()

    @property
    def a_sync_configs(self) -> dict[str, Any]:
        """A copy; assign a dict of some items to change them."""
        return {field.name: getattr(self._configs, field.name) for field in fields(self._configs)}

    @a_sync_configs.setter
    def a_sync_configs(self, items: Mapping[str, Any]) -> None:
        """Raises `ConfigError` for an unknown key, and `TypeError` for a value of another type."""
        overridden(self._configs, items)

    @property
    def settings(self) -> distributed_strategy.TranspilerStrategy:
        """The strategy of Fluid 1.8; raises `ConfigError` if `a_sync` and `k_steps` conflict."""
        factory, steps = distributed_strategy.StrategyFactory, self._configs.k_steps
        if steps < 0 or (steps and not self.a_sync):
            raise ConfigError(
                f"a_sync is {self.a_sync} and k_steps is {steps}.",
                hint="k_steps is 0, or with a_sync = True the steps between two exchanges of Geo.",
            )
        if not self.a_sync:
            return factory.create_sync_strategy()
        if steps:
            return factory.create_geo_strategy(steps)
        made = factory.create_async_strategy()
        names = [knob.removeprefix(_PREFIX) for knob in EFFECTS]
        knobs = {_PREFIX + name: getattr(self._configs, name) for name in names}
        made.set_trainer_runtime_config(knobs)
        return made
