"""Flags and versions: `fluid.set_flags`, `fluid.get_flags`, `fluid.require_version`.

psrt reads no flag of Fluid from here. What is set is kept, so that programs read it back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from psrt.core.errors import ConfigError

FLUID_VERSION = "1.8.5"
"""The newest version of PaddlePaddle whose Fluid this is."""

values: dict[str, Any] = {}


def set_flags(flags: Mapping[str, Any]) -> None:
    """Keep flags, `FLAGS_…`, by name; they have no effect."""
    values.update(flags)


def get_flags(flags: str | Iterable[str]) -> dict[str, Any]:
    """Return what `set_flags` was given, None for other flags."""
    names = [flags] if isinstance(flags, str) else flags
    return {name: values.get(name) for name in names}


def require_version(min_version: str, max_version: str | None = None) -> None:
    """Raise `ConfigError` unless Fluid 1.8.5 is within the versions, each like "1.7.0"."""
    have = _numbers("min_version", FLUID_VERSION)
    too_old = have < _numbers("min_version", min_version)
    too_new = max_version is not None and have > _numbers("max_version", max_version)
    if too_old or too_new:
        wanted = (
            f"{min_version} or later" if max_version is None else f"{min_version}–{max_version}"
        )
        raise ConfigError(f"The program requires PaddlePaddle {wanted}; psrt has {FLUID_VERSION}.")


def _numbers(argument: str, version: Any) -> tuple[int, ...]:
    """Four numbers of a version; raises `TypeError` or `ValueError` as Fluid does."""
    if not isinstance(version, str):
        raise TypeError(f"require_version was given {argument} {version!r}, not a text.")
    if not re.fullmatch(r"\d+(\.\d+){0,3}", version):
        raise ValueError(
            f"require_version was given {argument} {version!r}, expected like 1.5.2.0."
        )
    parts = [int(part) for part in version.split(".")]
    return tuple(parts + [0] * (4 - len(parts)))


def in_dygraph_mode() -> bool:
    """Return False: psrt has programs only."""
    return False


__all__ = ["get_flags", "in_dygraph_mode", "require_version", "set_flags"]
