"""What users fill in: attribute by attribute, as programs written for Fluid do, or as plain data.

A dataclass that inherits `DeclaredAttributes` takes only the attributes it declares, and none after
`freeze`: a misspelt setting is an error that names the nearest, not a setting without effect. One
that inherits `PlainFields` keeps numbers of numpy as Python's, which have a text form.
"""

from __future__ import annotations

import dataclasses
import difflib
from typing import Any

import numpy as np

from psrt.core.errors import ConfigError, ErrorCode


class DeclaredAttributes:
    """The base of dataclasses that are not frozen; an executor freezes what it was built with."""

    _frozen = False

    def __setattr__(self, name: str, value: Any) -> None:
        known = [field.name for field in dataclasses.fields(self)]  # type: ignore[arg-type]
        kind = type(self).__name__
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            raise ConfigError(
                f"{kind} has no field {name}.",
                code=ErrorCode.CONFIG_UNKNOWN_KEY,
                hint=f"Did you mean {near[0]}?" if near else f"It has {', '.join(known)}.",
            )
        if self._frozen:
            raise ConfigError(
                f"{kind} is in use by an executor, so {name} cannot change any more.",
                hint="Make a new strategy and a new executor.",
            )
        object.__setattr__(self, name, value)

    def freeze(self) -> None:
        object.__setattr__(self, "_frozen", True)


_PLAIN = (bool, int, float, str, type(None))


class PlainFields:
    """The base of frozen dataclasses that users make and that travel as JSON."""

    def __post_init__(self) -> None:
        for name, value in list(vars(self).items()):
            object.__setattr__(self, name, plain(value))


def plain(value: Any) -> Any:
    """Numbers of numpy as Python's, arrays and lists as tuples, in dataclasses too.

    Anything else stays as it is.
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
