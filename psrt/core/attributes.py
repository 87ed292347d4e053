"""Settings that users fill in attribute by attribute, as programs written for Fluid do.

A dataclass that inherits `DeclaredAttributes` takes only the attributes it declares, and none after
`freeze`: a misspelt setting is an error that names the nearest, not a setting without effect.
"""

from __future__ import annotations

import dataclasses
import difflib
from typing import Any

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
