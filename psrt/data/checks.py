"""Checks of the numbers that users give."""

from __future__ import annotations

import sys
from numbers import Integral
from typing import Any

from psrt.core.errors import ConfigError

FLOAT32_MAX = (2 - 2**-23) * 2.0**127
MAX_BATCH_SIZE = (1 << 31) - 1
"""Beyond any memory; all sizes computed from it fit into 64 bits."""


def at_least(least: int, what: str, number: Any, most: int = sys.maxsize) -> int:
    """Return `number` if it is an integer, Python's or numpy's, from `least` to `most`; else raise
    a `ConfigError` that names `what` it is."""
    if isinstance(number, bool) or not isinstance(number, Integral):
        raise ConfigError(f"{what} is an integer, not {number!r}.")
    given = int(number)
    if given < least:
        raise ConfigError(f"{what} is {least} or more, not {given}.")
    if given > most:
        raise ConfigError(f"{what} is at most {most:,}, not {given:,}.")
    return given


def batch_size_of(number: Any) -> int:
    """Return a legal number of examples of a batch, or raise `ConfigError`."""
    return at_least(1, "batch_size", number, MAX_BATCH_SIZE)
