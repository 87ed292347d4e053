"""Optional packages, imported on first use.

They are imported only here, so that each missing one gives one message: the feature that needs it,
and the extra of psrt that installs it.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from psrt.core.errors import ConfigError


def required(module: str, extra: str, what: str) -> ModuleType:
    """Import a module by its dotted name; raises `ConfigError` if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise missing(module, extra, what) from error


def found(module: str) -> ModuleType | None:
    """Return a module that only makes psrt faster, or None."""
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


def missing(module: str, extra: str, what: str) -> ConfigError:
    """Return the error for a package that `what` needs."""
    return ConfigError(
        f"{what} needs the Python package {module.partition('.')[0]!r}, which is not installed.",
        hint=f"Install psrt-cluster[{extra}] from a checkout of psrt: pip install '.[{extra}]'.",
    )
