"""Runtime knobs of Fluid by their names, and their effects in psrt.

`TrainerRuntimeConfig` and `ServerRuntimeConfig` are set by attribute, by item of `runtime_configs`,
by a dict given to the strategy, or by a variable `FLAGS_<name>`. `EFFECTS` lists what a knob
changes; a knob that was turned and has no effect is logged, once, by the strategy. Defaults that
are the number of replicas follow CPU_NUM, as Fluid's do.

`overridden` applies a replacement or a dict to a sub-config of a strategy: it refuses unknown keys,
naming the nearest, and values of another type.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from psrt.config.load import cpu_num, environment
from psrt.core.attributes import DeclaredAttributes
from psrt.core.errors import ConfigError, ErrorCode
from psrt.core.hints import did_you_mean
from psrt.core.specs import Async, CommunicationMode

__all__ = ["ServerRuntimeConfig", "TrainerRuntimeConfig"]

Config = TypeVar("Config")

EFFECTS: dict[str, str] = {
    "communicator_max_merge_var_num": "max_merge_var_num",
    "communicator_send_queue_size": "send_queue_size",
    "communicator_send_wait_times": "send_wait_times",
    "communicator_min_send_grad_num_before_recv": "min_send_grad_num_before_recv",
    "communicator_independent_recv_thread": "independent_recv_thread",
    "communicator_thread_pool_size": "thread_pool_size",
}
"""Knob → field of `Async`, the only mode that has these."""

IN_EVERY_MODE = ("rpc_deadline",)
ONLY_ASYNC = (*EFFECTS, "communicator_is_sgd_optimizer")


class WrongTypeError(ConfigError, TypeError):
    """A setting was given a value of another type."""


class RuntimeConfig(DeclaredAttributes):
    """Typed attributes with defaults from the environment."""

    def __post_init__(self) -> None:
        known = environment()
        for name, default in self.defaults().items():
            text = known.get(f"FLAGS_{name.lstrip('_')}", "")
            setattr(self, name, _parsed(name, text, default) if text else default)

    def __setattr__(self, name: str, value: Any) -> None:
        declared = self._declared()
        if name in declared:
            expected = bool if isinstance(declared[name], bool) else int
            value = _typed(type(self).__name__, name, value, expected)
        super().__setattr__(name, value)

    @classmethod
    def defaults(cls) -> dict[str, int | bool]:
        """Return the default of each knob."""
        replicas = cpu_num()
        return {n: replicas if d is None else d for n, d in cls._declared().items()}

    @classmethod
    def _declared(cls) -> dict[str, int | bool | None]:
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        return {field.name: field.metadata["default"] for field in fields}

    def turned(self) -> dict[str, int | bool]:
        """Return the knobs whose value is not the default."""
        defaults = self.defaults()
        values = {name: getattr(self, name) for name in defaults}
        return {name: value for name, value in values.items() if value != defaults[name]}


def _knob(default: int | bool | None) -> Any:
    """A knob; None = CPU_NUM."""
    return field(init=False, metadata={"default": default})


@dataclass
class TrainerRuntimeConfig(RuntimeConfig):
    """Communication of a trainer; `rpc_deadline` is in milliseconds."""

    communicator_max_merge_var_num: int = _knob(None)
    communicator_send_queue_size: int = _knob(None)
    communicator_independent_recv_thread: bool = _knob(True)
    communicator_min_send_grad_num_before_recv: int = _knob(None)
    communicator_thread_pool_size: int = _knob(5)
    communicator_send_wait_times: int = _knob(5)
    communicator_is_sgd_optimizer: bool = _knob(True)
    communicator_merge_sparse_grad: bool = _knob(True)
    communicator_fake_rpc: bool = _knob(False)
    rpc_deadline: int = _knob(180_000)
    rpc_retry_times: int = _knob(3)

    @property
    def runtime_configs(self) -> MutableMapping[str, int | bool]:
        """The knobs as a dict; writing its items writes the attributes."""
        return _Items(self)

    def get_communicator_flags(self) -> dict[str, str]:
        """Return the knobs of the communicator as texts, by name."""
        knobs = {name: getattr(self, name) for name in self.defaults()}
        return {n: str(int(value)) for n, value in knobs.items() if n.startswith("communicator_")}

    @property
    def call_timeout_s(self) -> float:
        return self.rpc_deadline / 1000

    def asynchronous(self, dc_asgd: float) -> Async:
        """Return the mode of these knobs."""
        values = {theirs: getattr(self, ours) for ours, theirs in EFFECTS.items()}
        merge = "sum" if self.communicator_is_sgd_optimizer else "average"
        return Async(merge=merge, dc_asgd=dc_asgd, **values)

    def idle(self, mode: CommunicationMode) -> list[str]:
        """Return the knobs that were turned and have no effect in `mode`."""
        used = IN_EVERY_MODE + (ONLY_ASYNC if isinstance(mode, Async) else ())
        return [name for name in self.turned() if name not in used]


@dataclass
class ServerRuntimeConfig(RuntimeConfig):
    """Threads of a pserver; without effect: each connection has its own thread in psrt."""

    _rpc_send_thread_num: int = _knob(12)
    _rpc_get_thread_num: int = _knob(12)
    _rpc_prefetch_thread_num: int = _knob(12)


class Knob(int):
    """A number that equals its text, too: Fluid keeps knobs as texts."""

    def __eq__(self, other: object) -> bool:
        return str(int(self)) == other if isinstance(other, str) else int(self) == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = int.__hash__


class _Items(MutableMapping[str, "int | bool"]):
    def __init__(self, config: RuntimeConfig) -> None:
        self._config = config

    def __getitem__(self, name: str) -> int | bool:
        if name not in self._config.defaults():
            raise KeyError(name)
        value: int | bool = getattr(self._config, name)
        return value if isinstance(value, bool) else Knob(value)

    def __setitem__(self, name: str, value: int | bool) -> None:
        check_key(self._config, name)
        setattr(self._config, name, number_of(value))

    def __delitem__(self, name: str) -> None:
        raise ConfigError(f"{name} cannot be deleted, only set.")

    def __iter__(self) -> Iterator[str]:
        return iter(self._config.defaults())

    def __len__(self) -> int:
        return len(self._config.defaults())


def overridden(current: Config, given: object) -> Config:
    """Return `given` if it has the type of `current`, else `current` with the items of a dict."""
    kind = type(current).__name__
    if isinstance(given, type(current)):
        return given
    if not isinstance(given, Mapping):
        raise WrongTypeError(
            f"{kind} is to be replaced by a {type(given).__name__}.",
            hint=f"Give a {kind}, or a dict of its fields.",
        )
    for name, value in given.items():
        check_key(current, name)
        before = getattr(current, name)
        value = number_of(value) if isinstance(current, TrainerRuntimeConfig) else value
        if before is not None:
            value = _typed(kind, name, value, type(before))
        setattr(current, name, value)
    return current


def number_of(value: Any) -> Any:
    """Return the number that a text holds, as Fluid's programs write knobs; other values as is."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def check_key(config: object, name: str) -> None:
    """Raise `ConfigError` for a name that `config` does not declare."""
    known = [field.name for field in dataclasses.fields(config)]  # type: ignore[arg-type]
    if name in known:
        return
    raise ConfigError(
        f"{type(config).__name__} doesn't have key: {name}.",
        code=ErrorCode.CONFIG_UNKNOWN_KEY,
        hint=did_you_mean(name, known, f"It has {', '.join(known)}."),
    )


def _typed(kind: str, name: str, value: Any, expected: type[Any]) -> Any:
    """Check the type of `value`; Fluid's programs write 0 and 1 for booleans."""
    if expected is bool and type(value) is int and value in (0, 1):
        return bool(value)
    if expected is float and type(value) is int:
        return float(value)
    # bool is an int to isinstance, and `min_block_size = True` is a mistake.
    if isinstance(value, expected) and (expected is bool) == (type(value) is bool):
        return value
    raise WrongTypeError(
        f"{kind}.{name} is {value!r}, a {type(value).__name__}, expected {expected.__name__}."
    )


def _parsed(name: str, text: str, default: int | bool) -> int | bool:
    known = {"true": 1, "false": 0}
    number = known.get(text.lower(), int(text) if text.isdecimal() else None)
    if number is None:
        raise ConfigError(f"FLAGS_{name.lstrip('_')} is {text!r}, expected a number.")
    return bool(number) if isinstance(default, bool) else number
