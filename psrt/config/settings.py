"""Declaration of one setting, and the conversion of a raw value to a legal one.

`setting(...)` gives a dataclass field its help line and limits; `settings_of(cls)` returns them as
`Setting`s, from which flags, TOML keys, variables and documentation are derived. `Setting.accept`
checks values of every source, so each bad value is reported with its origin, the value, and what is
expected.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import re
import typing
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from psrt.core.errors import ConfigError, ErrorCode
from psrt.core.hints import did_you_mean

STRINGS = tuple[str, ...]
_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")


def setting(
    default: Any,
    help: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] = (),
    role_variables: tuple[str, ...] = (),
    positional: str = "",
    credential: str = "",
    alias: str = "",
) -> Any:
    """Declare a dataclass field that is also a flag, a TOML key and a variable.

    `role_variables` are names that other launchers export (Open MPI, Slurm, older `PADDLE_*`
    scripts). A `positional` setting is an argument of its command, shown by that text in the help,
    and cannot be set in a TOML file. `alias` is a second flag, such as `--load`. A path may be that
    of a `credential` of systemd.
    """
    metadata = {
        "help": help,
        "minimum": minimum,
        "maximum": maximum,
        "choices": choices,
        "role_variables": role_variables,
        "positional": positional,
        "credential": credential,
        "alias": alias,
    }
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Setting:
    """One declared setting of a section, with its resolved type."""

    section: str
    name: str
    type: Any
    default: Any
    help: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    role_variables: tuple[str, ...] = ()
    positional: str = ""
    credential: str = ""
    alias: str = ""

    @property
    def key(self) -> str:
        return f"{self.section}.{self.name}"

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return f"PSRT_{self.section}_{self.name}".upper()

    @property
    def expected(self) -> str:
        """Description of legal values, for help and messages: `an integer, at least 1`."""
        if self.choices:
            return "one of " + ", ".join(choice or '""' for choice in self.choices)
        names = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}
        limit = "" if self.minimum is None else f", at least {self.minimum:g}"
        limit += "" if self.maximum is None else f", at most {self.maximum:g}"
        return names.get(self.type, "a list of strings") + limit

    def accept(self, value: Any, origin: str) -> Any:
        """Return the legal form of a value from `origin`; raises `ConfigError`.

        The value must have the declared type, as values of TOML do; `parse` takes text.
        """
        parsed = _typed(value, self.type)
        if parsed is None or not self._within_limits(parsed):
            raise ConfigError(
                f"{origin}: {self.key} is {value!r}, expected {self.expected}.",
                hint=did_you_mean(value, filter(None, self.choices), self.help),
            )
        return parsed

    def parse(self, text: str, origin: str) -> Any:
        """`accept` for text: `true`, `8` and `a,b` become a boolean, a number and a list."""
        value = _from_text(text, self.type)
        return self.accept(text if value is None else value, origin)

    def _within_limits(self, value: Any) -> bool:
        if self.choices and value not in self.choices:
            return False
        if isinstance(value, float) and not math.isfinite(value):
            return False
        is_enough = self.minimum is None or value >= self.minimum
        return bool(is_enough and (self.maximum is None or value <= self.maximum))


def _typed(value: Any, expected: Any) -> Any:
    """`value` if it has the expected type (an integer is also a number), else None."""
    if expected == STRINGS:
        is_strings = isinstance(value, list | tuple) and all(isinstance(v, str) for v in value)
        return tuple(value) if is_strings else None
    if expected is float and type(value) is int:
        return float(value)
    # type() rather than isinstance(): True is an int, and `port = true` is a mistake.
    return value if type(value) is expected else None


def _from_text(text: str, expected: Any) -> Any:
    """The value of a text, or None."""
    if expected == STRINGS:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if expected is bool:
        known = dict.fromkeys(_TRUE, True) | dict.fromkeys(_FALSE, False)
        return known.get(text.lower())
    try:
        return expected(text)
    except ValueError:
        return None


def settings_of(section: str, cls: type[Any]) -> list[Setting]:
    """Return the settings that a dataclass declares, in order of declaration."""
    hints = typing.get_type_hints(cls)
    return [
        Setting(section, field.name, hints[field.name], field.default, **field.metadata)
        for field in dataclasses.fields(cls)
        if field.metadata
    ]


def toml_key(name: str) -> str:
    """Return a key as TOML writes it."""
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def check_keys(where: str, section: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Raise `ConfigError` for a key of a section that is not declared."""
    for key in given:
        if key not in known:
            raise unknown(where, f"key {key!r} in [{section}]", key, known)


def unknown(where: str, what: str, name: str, known: Sequence[str]) -> ConfigError:
    """Return the error of a file or environment `where` with the undeclared `name`."""
    nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"Did you mean {nearest[0]!r}?" if nearest else f"Known: {', '.join(known)}."
    return ConfigError(f"{where}: unknown {what}.", code=ErrorCode.CONFIG_UNKNOWN_KEY, hint=hint)
