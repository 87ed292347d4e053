"""Errors for names that psrt does not have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NoReturn

from psrt.core.errors import ConfigError
from psrt.core.hints import did_you_mean


def missing(
    room: str, name: str, known: Iterable[str], instead: Mapping[str, str] | None = None
) -> AttributeError:
    """Return the error of `room.name`; `instead` maps names of Fluid to psrt's substitutes."""
    if instead and name in instead:
        return AttributeError(f"psrt has no {room}.{name}. {instead[name]}", name=name)
    known = sorted(known)
    hint = did_you_mean(name, known, f"It has {', '.join(known)}.")
    return AttributeError(f"psrt has no {room}.{name}. {hint}", name=name)


def refusing(room: str, what: str, hint: str) -> Callable[[str], NoReturn]:
    """Return the `__getattr__` of a module psrt does not have: `what` it is, and a way out."""

    def refuse(name: str) -> NoReturn:
        if name.startswith("__"):  # the import system asks every module for names of its own
            raise AttributeError(name)
        raise ConfigError(f"{room}.{name} is {what}, which psrt.fluid does not have.", hint=hint)

    return refuse
