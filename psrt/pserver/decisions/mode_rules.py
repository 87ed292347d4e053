"""Validation of communication modes: a HELLO may come from any process.

`specs.from_json` checks kinds and field names only; types and ranges of fields are checked here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from psrt.core.errors import ConfigError
from psrt.core.specs import CommunicationMode

_CHOICES = {"on_trainer_loss": ("wait", "shrink", "abort"), "merge": ("sum", "average")}
_FROM_ZERO = ("send_wait_times", "max_steps_ahead", "dc_asgd")
"""Every other number is at least 1."""
_MOST = 1 << 62


def check_mode(mode: CommunicationMode) -> None:
    """Raise `ConfigError` unless every setting of `mode` is legal."""
    problem = next(_problems(mode), "")
    if problem:
        raise ConfigError(
            f"mode {type(mode).__name__} has {problem}.",
            hint="See docs/explanation/semantics.md for what each setting means.",
        )


def _problems(mode: CommunicationMode) -> Iterator[str]:
    for field in dataclasses.fields(mode):
        value, choices = getattr(mode, field.name), _CHOICES.get(field.name)
        if choices is not None:
            if value not in choices:
                yield f"{field.name} = {value!r}, not one of {', '.join(choices)}"
        elif isinstance(field.default, bool):
            if not isinstance(value, bool):
                yield f"{field.name} = {value!r}, not true or false"
        else:
            yield from _number_problems(field.name, value, type(field.default))


def _number_problems(name: str, value: Any, kind: type) -> Iterator[str]:
    least = 0 if name in _FROM_ZERO else 1
    kinds = (int, float) if kind is float else (int,)
    is_number = isinstance(value, kinds) and not isinstance(value, bool)
    if not is_number or not least <= value <= _MOST:
        wanted = "a finite number" if kind is float else "a whole number"
        yield f"{name} = {value!r}, not {wanted} from {least} on, at most 2^62"
