"""The sections `[tables.NAME]` of a job file: what is asked of one sparse table.

A key counts instead of what the program says (`psrt.Param(table=…, optimizer=…)`), and replaces all
of it; what is left out stays as the program says. Options are the dataclasses of `psrt.core.specs`
as TOML tables, whose key `kind` names the class where there are several. Whether the program has a
table of the name is known once it is built: `psrt.trainer.inputs.table_changes`.
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
_HINT = "docs/reference/tables.md tells what a job file can say of a table."


@dataclass(frozen=True)
class TableConfig:
    """What a job says of one sparse table; None = as the program says.

    `learning_rate` is a constant one, multiplied by the one of `psrt.Param` as any other is.
    """

    admission: Admission | None = None
    score: Score | None = None
    lifecycle: Lifecycle | None = None
    growth: Growth | None = None
    storage: str | None = None
    optimizer: Optimizer | None = None
    learning_rate: float | None = None

    def given(self) -> dict[str, Any]:
        """The options that the job says, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class OptionPart:
    """An option that is a TOML table: its classes, and what may be wrong with one of them."""

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
        SECTION, "storage", str, "float32", "How weights lie in memory.", choices=STORAGES
    ),
    "learning_rate": Setting(
        SECTION, "learning_rate", float, 0.01, "Of the optimizer, at every step.", minimum=0.0
    ),
}


def section_of(table: str) -> str:
    """`tables.NAME`, the name in quotes where TOML wants them."""
    return f"{SECTION}.{toml_key(table)}"


def forms_of(part: OptionPart) -> Iterator[dict[str, Any]]:
    """Of every class an option may be of, the TOML table with all defaults, "" where is none."""
    for kind in part.kinds:
        named = {"kind": kind.__name__} if len(part.kinds) > 1 else {}
        fields = dataclasses.fields(kind)
        yield named | {
            f.name: "" if f.default is dataclasses.MISSING else f.default for f in fields
        }


def values_of(tables: Mapping[str, TableConfig]) -> dict[str, Any]:
    """What is said, by `tables.NAME.option`, as TOML has it."""
    return {
        f"{section_of(name)}.{option}": _plain(option, value)
        for name, table in tables.items()
        for option, value in table.given().items()
    }


def read(path: str, sections: Mapping[str, Any]) -> dict[str, TableConfig]:
    """What the file at `path` says by name of the table; raises `ConfigError` for anything odd."""
    return {name: _table(path, section_of(name), said) for name, said in sections.items()}


def _table(path: str, section: str, said: Any) -> TableConfig:
    if not isinstance(said, dict):
        raise ConfigError(f"{path}: {section} is {said!r}, expected a section [{section}].")
    check_keys(path, section, said, [*PARTS, *SETTINGS])
    options = {option: _option(path, section, option, value) for option, value in said.items()}
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


def _made(path: str, where: str, kinds: tuple[type, ...], said: Any) -> Any:
    """The dataclass that a TOML table stands for, its fields of their declared types."""
    if not isinstance(said, dict):
        raise ConfigError(f"{path}: {where} is {said!r}, expected a table.", hint=_HINT)
    fields = dict(said)
    cls = kinds[0] if len(kinds) == 1 else _kind(path, where, kinds, fields.pop("kind", ""))
    types = typing.get_type_hints(cls)
    check_keys(path, where, fields, list(types))
    for field in dataclasses.fields(cls):
        if field.default is dataclasses.MISSING and field.name not in fields:
            raise ConfigError(f"{path}: {where} says no {field.name}.", hint=_HINT)
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
