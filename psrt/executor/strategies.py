"""Build and execution options of a parallel executor, with Fluid's names.

Set fields like attributes; an unknown name is refused, and so is a change after the executor was
built. Fields below "no effect" exist so that programs written for Fluid run: they are about GPUs
or collectives, which a CPU executor does not have.
"""

from __future__ import annotations

import enum
import math
import operator
from dataclasses import dataclass
from typing import Any, Self

from psrt.core.attributes import DeclaredAttributes
from psrt.core.errors import ConfigError


class ReduceStrategy(enum.Enum):
    """Parameter copies of the replicas.

    `AllReduce`: every replica has a copy of the parameters, updated by the summed gradient.
    `Reduce`: there is one copy of the parameters, updated once.
    """

    AllReduce = 0
    Reduce = 1


class GradientScaleStrategy(enum.Enum):
    """The initial gradient of each replica's loss.

    `CoeffNumDevice`: its share of the examples of the batch, so that the sum over replicas is the
    gradient of the mean over the batch. `One`: 1, right for losses that are sums. `Customized`: the
    array fed as `<loss>@GRAD`.
    """

    CoeffNumDevice = 0
    One = 1
    Customized = 2


_CHOICES: dict[str, type[enum.Enum]] = {
    "reduce_strategy": ReduceStrategy,
    "gradient_scale_strategy": GradientScaleStrategy,
}
_LEAST = {"num_threads": 0, "num_iteration_per_drop_scope": 0, "num_iteration_per_run": 1}


class _Strategy(DeclaredAttributes):
    """Checks fields set by attribute or by keyword."""

    def __new__(cls, *_: Any, **fields: Any) -> Self:
        strategy = super().__new__(cls)
        for name in fields.keys() - cls.__dataclass_fields__.keys():  # type: ignore[attr-defined]
            setattr(strategy, name, fields[name])  # refused with the nearest name
        return strategy

    def __setattr__(self, name: str, value: Any) -> None:
        name = _OTHER_NAMES.get(name, name)
        super().__setattr__(name, _fitting(name, value))


_OTHER_NAMES = {"_dry_run": "dry_run"}
"""Names of fields in PaddlePaddle → names here."""


def _fitting(name: str, value: Any) -> Any:
    """The checked value of a field; raises `ConfigError`."""
    if name in _CHOICES:
        return _member(name, value, _CHOICES[name])
    if name in _LEAST:
        return at_least(_LEAST[name], name, value)
    is_time = isinstance(value, int | float) and math.isfinite(value) and value >= 0
    if name == "spin_s" and not is_time:
        raise ConfigError(f"spin_s is {value!r}.", hint="Give seconds, 0 or more.")
    return value


def _member(name: str, value: Any, choices: type[enum.Enum]) -> enum.Enum:
    """The member `value`, or the member of that name; raises `ConfigError`."""
    if isinstance(value, choices):
        return value
    if isinstance(value, str) and value in choices.__members__:
        return choices[value]
    known = " or ".join(f"{choices.__name__}.{each}" for each in choices.__members__)
    raise ConfigError(f"{name} is {value!r}.", hint=f"Give BuildStrategy.{known}.")


def at_least(least: int, name: str, value: Any) -> int:
    """`value` as an integer; raises `ConfigError` unless it is an integer of at least `least`."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise ConfigError(f"{name} is {value!r}.", hint=f"Give an integer, {least} or more.")
    return number


@dataclass
class ExecutionStrategy(_Strategy):
    """Execution of the graph of one step.

    `num_threads`: 0 = one per replica; more help only where ops of one replica are independent.
    `num_iteration_per_drop_scope`: runs after which temporary memory is released; 0 = never.
    `num_iteration_per_run`: iterations of one `run` on its batch. `spin_s`: seconds for which an
    idle thread polls before it sleeps; more is faster on dedicated cores, 0 leaves cores to others.
    `dry_run`: in `psrt.fluid`, runs compute nothing.
    """

    num_threads: int = 0
    num_iteration_per_drop_scope: int = 100
    num_iteration_per_run: int = 1
    spin_s: float = 0.002
    dry_run: bool = False
    # no effect
    use_thread_barrier: bool = False
    allow_op_delay: bool = False
    use_experimental_executor: bool = True
    use_cuda: bool = False


@dataclass
class BuildStrategy(_Strategy):
    """Construction of the graph of one step.

    `memory_optimize`: vars with disjoint lifetimes share memory (None = no), except gradients with
    `skip_grads`; vars to fetch must then be named to the executor (`keep`).
    `fuse_*`: see `psrt.graph.passes`, which states for each whether results keep their bits.
    `enable_backward_optimizer_op_deps`: no parameter changes before the whole backward has
    succeeded. `enable_sequential_execution`: a replica runs its ops in program order.
    `debug_graphviz_path`: file for the graph as Graphviz dot, "" = none.
    `async_mode`: replicas do not wait for each other, only in `ParallelExecutor.run_from`.
    """

    reduce_strategy: ReduceStrategy = ReduceStrategy.AllReduce
    gradient_scale_strategy: GradientScaleStrategy = GradientScaleStrategy.CoeffNumDevice
    debug_graphviz_path: str = ""
    enable_backward_optimizer_op_deps: bool = True
    enable_sequential_execution: bool = False
    memory_optimize: bool | None = None
    skip_grads: bool = False
    fuse_elewise_add_act_ops: bool = False
    fuse_all_optimizer_ops: bool = False
    fuse_embedding_pool_concat: bool = False
    fuse_slot_rows: bool = False
    fuse_loss_gradient: bool = False
    async_mode: bool = False
    # no effect
    remove_unnecessary_lock: bool = True
    cache_runtime_context: bool = False
    enable_inplace: bool = True
    enable_auto_fusion: bool = False
    fuse_bn_act_ops: bool = False
    fuse_relu_depthwise_conv: bool = False
    fuse_all_reduce_ops: bool | None = None
    fuse_broadcast_ops: bool | None = None
    sync_batch_norm: bool = False
    is_distribution: bool = False
    num_trainers: int = 1
    trainer_id: int = 0
    trainers_endpoints: tuple[str, ...] = ()
    nccl_comm_num: int = 1
    use_hierarchical_allreduce: bool = False
    mkldnn_enabled_op_types: tuple[str, ...] = ()


# Fluid programs use `BuildStrategy.ReduceStrategy.Reduce`.
BuildStrategy.ReduceStrategy = ReduceStrategy  # type: ignore[attr-defined]
BuildStrategy.GradientScaleStrategy = GradientScaleStrategy  # type: ignore[attr-defined]
