"""The sections `[tables.NAME]` of a job file: options of one sparse table.

A key replaces all of that option in the program (`psrt.Param(table=…, optimizer=…)`); options that
are left out stay. Options are the dataclasses of `psrt.core.specs` as TOML tables; the key `kind`
names the class where there are several. `psrt.trainer.inputs.table_changes` checks, once the
program is built, that it has a table of the name.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from psrt.config.settings import Setting, check_keys, toml_key, unknown
from psrt.core.errors import ConfigError
from psrt.core.specs import (
    STORAGES,
    Add,
    Admission,
    Growth,
    Lifecycle,
    Optimizer,
    Score,
    admission_problems,
    growth_problems,
    lifecycle_problems,
    optimizer_problems,
    score_problems,
    to_plain,
)

SECTION = "tables"
_HINT = "docs/reference/tables.md lists the options of a table in a job file."


@dataclass(frozen=True)
class TableConfig:
    """Options of one sparse table in a job file; None = those of the program.

    `learning_rate` is constant, and multiplied by that of `psrt.Param` like any other rate.
    """

    admission: Admission | None = None
    score: Score | None = None
    lifecycle: Lifecycle | None = None
    growth: Growth | None = None
    storage: str | None = None
    optimizer: Optimizer | None = None
    learning_rate: float | None = None

    def given(self) -> dict[str, Any]:
        """Return the options that the job sets, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class OptionPart:
    """An option that is a TOML table: its classes, and the function that yields problems."""

    kinds: tuple[type, ...]
    problems: Callable[[Any], Iterator[str]]


PARTS = {
    "admission": OptionPart(typing.get_args(Admission), admission_problems),
    "score": OptionPart((Score,), score_problems),
    "lifecycle": OptionPart((Lifecycle,), lifecycle_problems),
    "growth": OptionPart((Growth,), growth_problems),
    "optimizer": OptionPart(
        tuple(kind for kind in typing.get_args(Optimizer) if kind is not Add), optimizer_problems
    ),
}
SETTINGS = {
    "storage": Setting(
        SECTION, "storage", str, "float32", "Type of weights in memory.", choices=STORAGES
    ),
    "learning_rate": Setting(
        SECTION,
        "learning_rate",
        float,
        0.01,
        "Learning rate of the optimizer, at every step.",
        minimum=0.0,
    ),
}


def section_of(table: str) -> str:
    """Return `tables.NAME`, with quotes around the name where TOML needs them."""
    return f"{SECTION}.{toml_key(table)}"


def forms_of(part: OptionPart) -> Iterator[dict[str, Any]]:
    """Yield the TOML table of each class of an option with its defaults, "" where there is none."""
    for kind in part.kinds:
        named = {"kind": kind.__name__} if len(part.kinds) > 1 else {}
        fields = dataclasses.fields(kind)
        yield named | {
            f.name: "" if f.default is dataclasses.MISSING else f.default for f in fields
        }


def values_of(tables: Mapping[str, TableConfig]) -> dict[str, Any]:
    """Return the options that are set, by `tables.NAME.option`, as TOML values."""
    return {
        f"{section_of(name)}.{option}": _plain(option, value)
        for name, table in tables.items()
        for option, value in table.given().items()
    }


def read(path: str, sections: Mapping[str, Any]) -> dict[str, TableConfig]:
    """Return the options of tables in the file at `path`, by table; raises `ConfigError`."""
    return {name: _table(path, section_of(name), given) for name, given in sections.items()}


def _table(path: str, section: str, given: Any) -> TableConfig:
    if not isinstance(given, dict):
        raise ConfigError(f"{path}: {section} is {given!r}, expected a section [{section}].")
    check_keys(path, section, given, [*PARTS, *SETTINGS])
    options = {option: _option(path, section, option, value) for option, value in given.items()}
    return TableConfig(**options)


def _option(path: str, section: str, option: str, value: Any) -> Any:
    if option in SETTINGS:
        return dataclasses.replace(SETTINGS[option], section=section).accept(value, path)
    part = PARTS[option]
    made = _made(path, f"{section}.{option}", part.kinds, value)
    problem = next(part.problems(made), "")
    if problem:
        raise ConfigError(f"{path}: [{section}]: {problem}.", hint=_HINT)
    return made


def _made(path: str, where: str, kinds: tuple[type, ...], given: Any) -> Any:
    """The dataclass of a TOML table, with fields of their declared types."""
    if not isinstance(given, dict):
        raise ConfigError(f"{path}: {where} is {given!r}, expected a table.", hint=_HINT)
    fields = dict(given)
    cls = kinds[0] if len(kinds) == 1 else _kind(path, where, kinds, fields.pop("kind", ""))
    types = typing.get_type_hints(cls)
    check_keys(path, where, fields, list(types))
    for field in dataclasses.fields(cls):
        if field.default is dataclasses.MISSING and field.name not in fields:
            raise ConfigError(f"{path}: {where} has no {field.name}.", hint=_HINT)
    return cls(
        **{
            name: Setting(where, name, types[name], None, _HINT).accept(value, path)
            for name, value in fields.items()
        }
    )


def _kind(path: str, where: str, kinds: tuple[type, ...], named: Any) -> type:
    known = {kind.__name__: kind for kind in kinds}
    if named not in known:
        raise unknown(path, f"kind {named!r} of {where}", str(named), list(known))
    return known[named]


def _plain(option: str, value: Any) -> Any:
    """The inverse of `_option`."""
    if option in SETTINGS:
        return value
    plain = to_plain(value)
    if len(PARTS[option].kinds) == 1:
        del plain["kind"]
    return plain
