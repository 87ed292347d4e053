"""Settings given as `section.key=value`: the flag `--set` and its short forms.

Each becomes the variable of its setting, so that processes which a command starts get it, too.
`job.params.NAME=VALUE` replaces one keyword argument of `build()`; these travel together, as JSON,
in `PSRT_JOB_PARAMS`.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from psrt.config.overrides import GivenValue
from psrt.config.sections import SECTIONS, communication
from psrt.config.settings import settings_of, unknown
from psrt.core.errors import ConfigError
from psrt.core.specs import MODES

PARAMS = "PSRT_JOB_PARAMS"
_PARAM = "job.params."
SHORT = {"epochs": "data.epochs", "batch_size": "data.batch_size"}
"""Flags that stand for a setting."""


def assigned(words: Iterable[str], short: Mapping[str, str | None]) -> dict[str, GivenValue]:
    """Return values by variable for the words of `--set`, and for flags of `SHORT` that are given.

    Raises `ConfigError` for a word that sets nothing.
    """
    variables = _variables()
    found: dict[str, GivenValue] = {}
    params: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise ConfigError(
                f"--set {word} has no value.", hint="Write --set section.key=value, once for each."
            )
        if key.startswith(_PARAM):
            params[key.removeprefix(_PARAM)] = plain_value(value)
        elif key in variables:
            found[variables[key]] = GivenValue(value, f"flag --set {key}")
        else:
            raise unknown("--set", f"setting {key}", key, list(variables))
    for name, number in short.items():
        if number is not None:
            flag = f"flag --{name.replace('_', '-')}"
            found[variables[SHORT[name]]] = GivenValue(str(number), flag)
    if params:
        found[PARAMS] = GivenValue(json.dumps(params), "flag --set")
    return found


def plain_value(text: str) -> Any:
    """Return a value of TOML, such as `0.1`, `true` or `[64, 32]`; any other text is itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def params_of(given: GivenValue | None) -> dict[str, Any]:
    """Return the keyword arguments in the variable `PARAMS`."""
    if given is None:
        return {}
    try:
        params = json.loads(given.text)
    except ValueError:
        params = None
    if not isinstance(params, dict):
        raise ConfigError(
            f"{given.origin}: {PARAMS} is {given.text!r}, expected a JSON object.",
            hint="Use --set job.params.NAME=VALUE.",
        )
    return params


def _variables() -> dict[str, str]:
    """The variables of all settings by `section.key`."""
    settings = [s for section, cls in SECTIONS.items() for s in settings_of(section, cls)]
    settings += [s for mode in MODES for s in communication.settings_of_mode(mode)]
    settings += communication.IN_EVERY_MODE
    return {s.key: s.variable for s in settings if not s.positional}
