"""Packages psrt can do without: imported when data asks for them.

They are imported nowhere else, so that a missing one is always the same message: what needs it, and
which extra of psrt brings it.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from psrt.core.errors import ConfigError


def required(module: str, extra: str, what: str) -> ModuleType:
    """The module by its dotted name; `ConfigError` naming `psrt[extra]` if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise missing(module, extra, what) from error


def found(module: str) -> ModuleType | None:
    """The module, where psrt is only faster with it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


def missing(module: str, extra: str, what: str) -> ConfigError:
    return ConfigError(
        f"{what} needs the Python package {module.partition('.')[0]!r}, which is not installed.",
        hint=f"Install psrt[{extra}] from a checkout of psrt: pip install '.[{extra}]'.",
    )
