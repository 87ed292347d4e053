"""The file of a warm start's rules: TOML to `WarmRule`s.

unused = ["tower_old.*"]        names in the source that the job is not to use

[[rule]]                        the first rule that matches a parameter counts
parameter = "emb"               or pattern = "fc_(\\d+)\\.w_0"
from = "embedding"              name in the source; \\1 is the first group of the pattern
skip = true                     or: begin with initial values
state = "new"                   or "kept"
resize = true                   the shape may differ
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from psrt.config.settings import unknown
from psrt.core.errors import ConfigError
from psrt.core.specs import WARM_STATES, WarmRule

_TYPES: dict[str, type] = {"parameter": str, "pattern": str, "from": str, "state": str}
_TYPES |= {"skip": bool, "resize": bool}
_EXAMPLE = 'Write [[rule]] with parameter = "NAME" or pattern = "REGEX", and from = "NAME".'


def read_warm_rules(path: str) -> tuple[tuple[WarmRule, ...], tuple[str, ...]]:
    """Rules and patterns of unused names; raises `ConfigError` that names file, rule and key."""
    try:
        parsed = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}.", hint=_EXAMPLE) from error
    except ValueError as error:  # TOMLDecodeError, or bytes that are not UTF-8
        raise ConfigError(f"{path}: not a TOML file: {error}.") from error
    for key in parsed:
        if key not in ("rule", "unused"):
            raise unknown(path, f"key {key!r}", key, ("rule", "unused"))
    rules, unused = parsed.get("rule", []), parsed.get("unused", [])
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        raise ConfigError(f"{path}: rule is not a list of tables.", hint=_EXAMPLE)
    if not isinstance(unused, list) or not all(isinstance(each, str) for each in unused):
        raise ConfigError(f"{path}: unused is {unused!r}, expected a list of strings.")
    for pattern in unused:
        _check_pattern(path, pattern)
    return tuple(_rule(f"{path}: rule {n}", r) for n, r in enumerate(rules, 1)), tuple(unused)


def _rule(where: str, table: Mapping[str, Any]) -> WarmRule:
    for key, value in table.items():
        if key not in _TYPES:
            raise unknown(where, f"key {key!r}", key, tuple(_TYPES))
        if type(value) is not _TYPES[key]:
            kind = "true or false" if _TYPES[key] is bool else "a string"
            raise ConfigError(f"{where}: {key} is {value!r}, expected {kind}.", hint=_EXAMPLE)
    if ("parameter" in table) == ("pattern" in table):
        raise ConfigError(f"{where} needs one of parameter and pattern.", hint=_EXAMPLE)
    if table.get("skip") and table.keys() & {"from", "state", "resize"}:
        raise ConfigError(f"{where} skips the parameter, so its other keys mean nothing.")
    if table.get("state", "") not in WARM_STATES:
        raise ConfigError(f"{where}: state is {table['state']!r}, expected kept or new.")
    rule = WarmRule(
        parameter=table.get("parameter", table.get("pattern", "")),
        is_pattern="pattern" in table,
        source=table.get("from", ""),
        skip=table.get("skip", False),
        state=table.get("state", ""),
        resize=table.get("resize", False),
    )
    if rule.is_pattern:
        _check_groups(where, rule, _check_pattern(where, rule.parameter))
    return rule


def _check_pattern(where: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"{where}: {pattern!r} is no regular expression: {error}.") from error


def _check_groups(where: str, rule: WarmRule, pattern: re.Pattern[str]) -> None:
    groups = [int(number) for number in re.findall(r"\\(\d+)", rule.source)]
    if any(not 0 < number <= pattern.groups for number in groups):
        raise ConfigError(
            f"{where}: from is {rule.source!r}, but its pattern has {pattern.groups} groups.",
            hint="Put parentheses around the part of the name that \\1 is to stand for.",
        )
