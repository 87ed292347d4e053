"""Bases of dataclasses that users fill in, by attribute (as programs for Fluid do) or at once.

A dataclass that inherits `DeclaredAttributes` accepts only the attributes it declares, and none
after `freeze`: a misspelt setting is an error that names the nearest. A dataclass that inherits
`PlainFields` converts numbers of numpy to Python's, which have a text form.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from psrt.core.errors import ConfigError, ErrorCode
from psrt.core.hints import did_you_mean


class DeclaredAttributes:
    """Base of mutable dataclasses that reject undeclared attributes; executors freeze theirs."""

    _frozen = False

    def __setattr__(self, name: str, value: Any) -> None:
        known = [field.name for field in dataclasses.fields(self)]  # type: ignore[arg-type]
        kind = type(self).__name__
        if name not in known:
            raise ConfigError(
                f"{kind} has no field {name}.",
                code=ErrorCode.CONFIG_UNKNOWN_KEY,
                hint=did_you_mean(name, known, f"It has {', '.join(known)}."),
            )
        if self._frozen:
            raise ConfigError(
                f"{kind} is in use by an executor, so {name} can no longer change.",
                hint="Make a new strategy and a new executor.",
            )
        object.__setattr__(self, name, value)

    def freeze(self) -> None:
        object.__setattr__(self, "_frozen", True)


_PLAIN = (bool, int, float, str, type(None))


class PlainFields:
    """Base of frozen dataclasses that users make and that travel as JSON."""

    def __post_init__(self) -> None:
        for name, value in list(vars(self).items()):
            object.__setattr__(self, name, plain(value))


def plain(value: Any) -> Any:
    """Convert numbers of numpy to Python's, arrays and lists to tuples, also within dataclasses.

    Returns any other value unchanged.
    """
    if type(value) in _PLAIN:  # not isinstance: a float64 of numpy is a float, too
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return tuple(plain(item) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return dataclasses.replace(value, **{name: plain(item) for name, item in fields.items()})
    return value
