"""What is said of a name that Fluid has, or nobody has, and psrt has not."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from psrt.core.errors import ConfigError


def nearest(name: str, known: Iterable[str]) -> str:
    """`Did you mean …?`, or nothing where no name is near."""
    near = difflib.get_close_matches(name, list(known), 1)
    return f"Did you mean {near[0]}?" if near else ""


def missing(
    room: str, name: str, known: Iterable[str], instead: Mapping[str, str] | None = None
) -> AttributeError:
    """The error of `room.name`; `instead` says of names of Fluid what psrt offers."""
    if instead and name in instead:
        return AttributeError(f"psrt has no {room}.{name}. {instead[name]}", name=name)
    known = sorted(known)
    hint = nearest(name, known) or f"It has {', '.join(known)}."
    return AttributeError(f"psrt has no {room}.{name}. {hint}", name=name)


def refused(room: str, name: str, what: str, hint: str) -> Exception:
    """The error of `name` in a module that Fluid has and psrt has not: `what` it is, and a way out.

    The import system asks modules for names of its own; these are not there, and no more is said.
    """
    if name.startswith("__"):
        return AttributeError(name)
    return ConfigError(f"{room}.{name} is {what}, which psrt.fluid does not have.", hint=hint)
