"""Errors for names that psrt does not have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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


def refused(room: str, name: str, what: str, hint: str) -> Exception:
    """Return the error of `name` in a module psrt does not have: `what` it is, and a way out.

    The import system asks modules for names of its own, which get a bare `AttributeError`.
    """
    if name.startswith("__"):
        return AttributeError(name)
    return ConfigError(f"{room}.{name} is {what}, which psrt.fluid does not have.", hint=hint)
