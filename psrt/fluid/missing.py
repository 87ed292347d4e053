"""What is said of a name that Fluid has, or nobody has, and psrt has not."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping


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
