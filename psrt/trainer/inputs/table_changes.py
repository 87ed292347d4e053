"""Settings of sparse tables in a job file, which replace those of the program.

Parameters carry them afterwards, so that training, plans and sizes follow. Their values are legal (
`psrt.config.sections.tables`); that tables exist is checked here.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any

from psrt.config.sections import TableConfig, section_of
from psrt.core.errors import ConfigError, ErrorCode
from psrt.core.specs import ConstantRate, scaled
from psrt.graph.program import Parameter, Program


def change_tables(program: Program, tables: Mapping[str, TableConfig], path: str) -> None:
    """Apply settings by table name; `path` is the job file they come from."""
    known = [p.name for p in program.parameters.values() if p.sparse or p.distributed]
    for name, table in tables.items():
        if name not in known:
            raise _unknown(path, name, known)
        program.parameters[name] = _changed(program.parameters[name], table, path)


def _changed(parameter: Parameter, table: TableConfig, path: str) -> Parameter:
    given = table.given()
    training: dict[str, Any] = {}
    if "optimizer" in given:
        training["optimizer"] = given.pop("optimizer")
    if "learning_rate" in given:
        rate = ConstantRate(given.pop("learning_rate"))
        training["learning_rate"] = scaled(rate, parameter.rate_scale)
    if training and parameter.optimizer is None:
        raise ConfigError(
            f"{path}: [{section_of(parameter.name)}] sets {' and '.join(training)}, but the "
            "program does not train this table.",
            hint="Leave that out, or let a loss depend on a trainable table.",
        )
    options = dataclasses.replace(parameter.options, **given)
    return dataclasses.replace(parameter, options=options, **training)


def _unknown(path: str, name: str, known: list[str]) -> ConfigError:
    nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"It has: {', '.join(known)}." if known else "It has none."
    return ConfigError(
        f"{path}: [{section_of(name)}]: the program has no sparse table {name!r}.",
        code=ErrorCode.CONFIG_UNKNOWN_KEY,
        hint=f"Did you mean {nearest[0]!r}?" if nearest else hint,
    )
