"""Validation of names: rejects sections, keys and variables that are not declared.

`read_toml` returns a file whose keys are all declared; `check_variables` rejects a `PSRT_` variable
that is neither a setting nor one of `_OTHERS`. The message names file, key and the nearest declared
name.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from psrt.config.sections import FREE_TABLES, SECTIONS, communication, tables
from psrt.config.settings import check_keys, settings_of, unknown
from psrt.core.errors import ConfigError, ErrorCode
from psrt.core.specs import MODES

_PREFIX = "PSRT_"
_OTHERS = re.compile(
    r"PSRT_(HOME|CONFIG|DEBUG|JOB_PARAMS|FAILPOINT|BENCH_.*|PORT|(.+_)?PORT_\d+_(TCP|UDP|SCTP).*|(.+_)?SERVICE_(HOST|PORT.*))"
)
"""Installation path, file of a host, arguments of `build()`, failpoints, variables of benchmarks
and of Kubernetes."""

_LINK = re.compile(r"(tcp|udp|sctp)://")
"""Value of `PSRT_PSERVER_PORT` that Kubernetes sets for a service named `psrt-pserver`."""


@dataclass(frozen=True)
class TomlFile:
    """A parsed TOML file whose sections and keys are all declared; `below` are those it overrides,
    the one of highest precedence first."""

    path: str = ""
    tables: Mapping[str, Any] = field(default_factory=dict)
    below: tuple[TomlFile, ...] = ()

    def values(self, section: str) -> dict[str, Any]:
        return dict(self.tables.get(section, {}))


def read_toml(path: str) -> TomlFile:
    """Parse a file; raises `ConfigError` for one that is unreadable or has undeclared keys."""
    try:
        parsed = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read: {error.strerror}.", hint="Check the path of the TOML file."
        ) from error
    except ValueError as error:  # TOMLDecodeError, or bytes that are not UTF-8
        raise ConfigError(
            f"{path}: not a TOML file: {error}.",
            hint='Values are written as name = "text", count = 3, list = ["a", "b"], flag = true.',
        ) from error
    for section, table in parsed.items():
        _check_table(path, section, table)
    return TomlFile(path, parsed)


def _check_table(path: str, section: str, table: Any) -> None:
    known = [*SECTIONS, communication.SECTION, tables.SECTION]
    if section not in known:
        raise unknown(path, f"section [{section}]", section, known)
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: {section} is {table!r}, expected a section [{section}].")
    if section == communication.SECTION:
        _check_communication(path, table)
        return
    if section == tables.SECTION:
        tables.read(path, table)
        return
    names = [s.name for s in settings_of(section, SECTIONS[section]) if not s.positional]
    free = FREE_TABLES.get(section, ())
    names += free
    check_keys(path, section, table, names)
    for key in free:
        if not isinstance(table.get(key, {}), dict):
            raise ConfigError(f"{path}: {section}.{key} is {table[key]!r}, expected a table.")


def _check_communication(path: str, table: Mapping[str, Any]) -> None:
    mode = communication.MODE.accept(table.get("mode", communication.MODE.default), path)
    own = [setting.name for setting in communication.settings_of_mode(mode)]
    for key in table:
        others = communication.modes_with(key)
        if key not in own and others:
            raise ConfigError(
                f"{path}: [communication] {key} means nothing in mode {mode!r}.",
                code=ErrorCode.CONFIG_UNKNOWN_KEY,
                hint=f"It belongs to {' and '.join(others)}; {mode} has: {', '.join(own)}.",
            )
    everywhere = [setting.name for setting in communication.IN_EVERY_MODE]
    known = [*everywhere, communication.WIRE_TABLES, *own]
    check_keys(path, communication.SECTION, table, known)
    _check_wire_tables(path, table.get(communication.WIRE_TABLES, {}))


def _check_wire_tables(path: str, precisions: Any) -> None:
    what = f"{path}: communication.{communication.WIRE_TABLES}"
    if not isinstance(precisions, dict):
        raise ConfigError(
            f"{what} is {precisions!r}, expected a table.",
            hint='Write wire_tables = { emb = "int8" }, with names of parameters.',
        )
    for name, precision in precisions.items():
        communication.WIRE.accept(precision, f"{what}.{name}")


def without_service_links(environ: Mapping[str, str]) -> dict[str, str]:
    """Return `environ` without service variables of Kubernetes with names of settings."""
    return {
        name: value
        for name, value in environ.items()
        if not (name.startswith(_PREFIX) and _LINK.match(value))
    }


def check_variables(environ: Mapping[str, str]) -> None:
    """Raise `ConfigError` for a `PSRT_` variable that sets nothing."""
    declared = _variables()
    for name in environ:
        if name.startswith(_PREFIX) and name not in declared and not _OTHERS.fullmatch(name):
            raise unknown("environment", f"variable {name}", name, declared)


def _variables() -> list[str]:
    settings = [s for section, cls in SECTIONS.items() for s in settings_of(section, cls)]
    settings += [s for mode in MODES for s in communication.settings_of_mode(mode)]
    return [setting.variable for setting in (*settings, *communication.IN_EVERY_MODE)]
