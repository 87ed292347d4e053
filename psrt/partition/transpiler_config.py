"""The settings of the transpiler with Fluid's names, and the communication mode they mean.

Fluid sets a mode by flags of which few combinations are legal. `mode_of` turns them into one of the
types of `psrt.core.specs.modes`, and raises for flags that contradict each other.

    sync_mode (the default), or completely_not_async      Sync
    geo_sgd_mode                                          Geo
    half_async                                            HalfAsync
    mode "nccl2" or "collective"                          Collective
    none of them                                          Async
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from psrt.core.attributes import DeclaredAttributes
from psrt.core.errors import ConfigError
from psrt.core.specs import MODES, Async, Collective, CommunicationMode, Geo, HalfAsync, Sync
from psrt.partition.arguments import whole, yes_or_no
from psrt.partition.dispatchers import SplitMethod
from psrt.partition.slicing import DEFAULT_MIN_BLOCK_SIZE

FLUIDS_LAMBDA = 1.0
"""Fluid's delay compensation has no λ before the term, so turning it on means this one."""

COLLECTIVE = ("nccl2", "collective")
_ROUNDS = "in a synchronous job each step waits for the round of all trainers"
_ONE = "they are two modes"
_DELAY = "delay compensation is for gradients that arrive late, which only Async has"
_CONTRADICTIONS = (
    ("runtime_split_send_recv", "sync_mode", _ROUNDS),
    ("half_async", "sync_mode", _ROUNDS),
    ("geo_sgd_mode", "sync_mode", _ROUNDS),
    ("geo_sgd_mode", "half_async", _ONE),
    ("geo_sgd_mode", "completely_not_async", _ONE),
    ("enable_dc_asgd", "sync_mode", _DELAY),
    ("enable_dc_asgd", "completely_not_async", _DELAY),
    ("enable_dc_asgd", "half_async", _DELAY),
    ("enable_dc_asgd", "geo_sgd_mode", _DELAY),
)
_AT_ONCE = ("runtime_split_send_recv", "sync_mode")
"""The fields that are compared when one of them is set, as in Fluid; others by `mode_of`."""

_SWITCHES = (
    *("slice_var_up", "print_log", "wait_port", "sync_mode", "runtime_split_send_recv"),
    *("half_async", "completely_not_async", "geo_sgd_mode", "enable_dc_asgd"),
)
_NUMBERS = ("min_block_size", "geo_sgd_need_push_nums")


@dataclass
class DistributeTranspilerConfig(DeclaredAttributes):
    """Set fields like attributes; raises for an unknown name or a value of another type.

    `slice_var_up` cuts large parameters into blocks of at least `min_block_size` elements, so that
    all pservers share them. `split_method` places the blocks: "Balanced" (near-equal in bytes),
    "RoundRobin", "HashName", a class with `dispatch(varlist)`, or a function of (blocks,
    endpoints). `wait_port`: a trainer waits for pservers that are not up yet. `print_log` prints
    what each pserver holds. `mode` "nccl2" or "collective" trains without pservers. For the fields
    from `sync_mode` on see `mode_of`; `enable_dc_asgd` adds delay compensation to Async.
    """

    slice_var_up: bool = True
    split_method: SplitMethod = "Balanced"
    min_block_size: int = DEFAULT_MIN_BLOCK_SIZE
    enable_dc_asgd: bool = False
    mode: str = "pserver"
    print_log: bool = False
    wait_port: bool = True
    sync_mode: bool = True
    runtime_split_send_recv: bool = False
    half_async: bool = False
    completely_not_async: bool = False
    geo_sgd_mode: bool = False
    geo_sgd_need_push_nums: int = 100
    # no effect: torch.distributed chooses how gradients travel
    nccl_comm_num: int = 1
    use_hierarchical_allreduce: bool = False
    hierarchical_allreduce_inter_nranks: int = 0
    collective_mode: str | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _SWITCHES:
            value = yes_or_no(name, value)
        elif name in _NUMBERS:
            value = whole(name, value)
        others = [n for n in _AT_ONCE if n != name and vars(self).get(n)] if value else []
        if name in _AT_ONCE and others:
            raise _contradiction(*_CONTRADICTIONS[0])
        super().__setattr__(name, value)


def mode_of(config: DistributeTranspilerConfig, sync_mode: bool | None = None) -> CommunicationMode:
    """The mode that a config means; the argument `sync_mode` of `transpile` overrides the config's.

    Raises `ConfigError` naming the two fields that contradict each other.
    """
    sync = config.sync_mode if sync_mode is None else yes_or_no("sync_mode", sync_mode)
    _check_kind(config.mode)
    _refuse_contradictions(config, sync)
    if config.mode in COLLECTIVE:
        return Collective()
    if sync or config.completely_not_async:
        return Sync()
    if config.geo_sgd_mode:
        return Geo(config.geo_sgd_need_push_nums)
    if config.half_async:
        return HalfAsync()
    return Async(dc_asgd=FLUIDS_LAMBDA if config.enable_dc_asgd else 0.0)


def checked_mode(mode: CommunicationMode) -> CommunicationMode:
    """Return `mode`; raises `ConfigError` unless it is one of `psrt.core.specs.modes`."""
    kinds = tuple(MODES.values())
    if isinstance(mode, kinds):
        return mode
    raise ConfigError(
        f"mode is {mode!r}, which is no communication mode.",
        hint=f"Give one with its settings: {', '.join(f'{kind.__name__}()' for kind in kinds)}.",
    )


def _check_kind(mode: str) -> None:
    known = ("pserver", *COLLECTIVE)
    if mode not in known:
        raise ConfigError(
            f"mode is {mode!r}, expected one of {', '.join(known)}.",
            hint="Set how gradients travel to pservers by sync_mode, half_async and geo_sgd_mode.",
        )


def _refuse_contradictions(config: DistributeTranspilerConfig, sync: bool) -> None:
    flags = {**vars(config), "sync_mode": sync}
    for one, other, why in _CONTRADICTIONS:
        if flags[one] and flags[other]:
            raise _contradiction(one, other, why)
    if config.geo_sgd_need_push_nums < 1:
        raise ConfigError(
            f"geo_sgd_need_push_nums is {config.geo_sgd_need_push_nums}, expected at least 1.",
            hint="Trainers exchange changes every so many steps.",
        )


def _contradiction(one: str, other: str, why: str) -> ConfigError:
    return ConfigError(f"{one} contradicts {other}: {why}.", hint="Turn one of them off.")


__all__ = ["COLLECTIVE", "DistributeTranspilerConfig", "checked_mode", "mode_of"]
