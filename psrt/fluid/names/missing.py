"""Errors for names that psrt does not have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from psrt.core.errors import ConfigError
from psrt.core.hints import did_you_mean
from psrt.fluid.names.edges import edge_of


def missing(
    room: str, name: str, known: Iterable[str], instead: Mapping[str, str] | None = None
) -> AttributeError:
    """Return the error of `room.name`; `instead` maps names of Fluid to psrt's substitutes.

    Without one it names the part of Fluid that psrt will not have, and the nearest of `known`.
    """
    if instead and name in instead:
        return AttributeError(f"psrt has no {room}.{name}. {instead[name]}", name=name)
    part = edge_of(name)
    otherwise = "docs/reference/fluid.md lists what there is."
    if part:
        otherwise = f"It will not have {part}: “What psrt will not have”, docs/reference/fluid.md."
    near = did_you_mean(name, sorted(known))
    hint = " ".join(part for part in (near, otherwise if part or not near else "") if part)
    return AttributeError(f"psrt has no {room}.{name}. {hint}", name=name)


def refusing(room: str, what: str, hint: str) -> Callable[[str], NoReturn]:
    """Return the `__getattr__` of a module psrt does not have: `what` it is, and a way out."""

    def refuse(name: str) -> NoReturn:
        if name.startswith("__"):  # the import system asks every module for names of its own
            raise AttributeError(name)
        raise ConfigError(f"{room}.{name} is {what}, which psrt.fluid does not have.", hint=hint)

    return refuse


def refusing_class(room: str, name: str, what: str, hint: str) -> type[Any]:
    """Return a class `name` that can be imported; making one raises `ConfigError`."""

    def refuse(self: Any, *arguments: Any, **options: Any) -> NoReturn:
        raise ConfigError(f"{room}.{name} needs {what}, which psrt.fluid does not have.", hint=hint)

    return type(name, (), {"__init__": refuse, "__doc__": f"Raises `ConfigError`: {what}."})


class RefusingFleet:
    """A `fleet` that can be imported; its `init` raises `ConfigError`, an `ImportError`, too.

    Other names raise an `AttributeError`.
    """

    def __init__(self, room: str, what: str, hint: str) -> None:
        self._refused = (room, what, hint)

    def init(self, role_maker: Any = None) -> NoReturn:
        """Raise `RefusedImportError`."""
        room, what, hint = self._refused
        raise RefusedImportError(f"{room} is {what}, which psrt.fluid does not have.", hint=hint)

    def __getattr__(self, name: str) -> NoReturn:
        room, _, hint = self.__dict__.get("_refused", ("", "", ""))
        raise AttributeError(f"psrt has no {room}.fleet.{name}. {hint}", name=name)


class RefusedImportError(ConfigError, ImportError):
    """A part of PaddlePaddle that psrt does not have was to begin."""
