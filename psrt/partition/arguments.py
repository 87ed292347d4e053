"""Checks of a transpiler's arguments: converts them to the types of a plan, or raises.

A text instead of a number or of False would be misread later, or fail there without naming its
origin.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from psrt.core.errors import ConfigError

_PORTS = range(1, 1 << 16)
_ENDPOINTS = 'Write pservers="10.0.0.1:6170,10.0.0.2:6170", the same in every process.'


def whole(name: str, value: Any, hint: str = "int(…) makes one of a text.") -> int:
    """`value` as an int; raises `ConfigError` unless it is an integer."""
    try:
        return operator.index(value)
    except TypeError:
        raise ConfigError(f"{name} is {value!r}, expected an integer.", hint=hint) from None


def yes_or_no(name: str, value: Any) -> bool:
    """`value` as a bool; accepts 0 and 1, raises `ConfigError` for anything else."""
    if isinstance(value, int | np.integer | np.bool_) and value in (0, 1):
        return bool(value)
    raise ConfigError(
        f"{name} is {value!r}, expected True or False.",
        hint='Compare a text first: text == "True".',
    )


def trainer_numbers(trainer_id: Any, trainers: Any) -> tuple[int, int]:
    """(`trainer_id`, `trainers`) as ints; raises `ConfigError` unless 0 <= id < trainers."""
    trainers = whole("trainers", trainers, "Give the number of trainers.")
    from_text = "Variables of the environment are texts: int(…) makes a number of one."
    trainer_id = whole("trainer_id", trainer_id, from_text)
    if trainers < 1:
        raise ConfigError(
            f"the job has {trainers} trainers.", hint="trainers is their number: 1 or more."
        )
    if not 0 <= trainer_id < trainers:
        raise ConfigError(
            f"trainer_id is {trainer_id}, but the job has {trainers} trainer(s).",
            hint="Ids count from 0, and each is given to one trainer.",
        )
    return trainer_id, trainers


def endpoints_of(pservers: str | Sequence[str]) -> list[str]:
    """Endpoints of a list or a comma-separated text; raises `ConfigError` unless host:port each."""
    given: Any = pservers.split(",") if isinstance(pservers, str) else pservers
    listed = list(given) if isinstance(given, Iterable) else [given]
    if not all(isinstance(each, str) for each in listed):
        raise ConfigError(f"pservers is {pservers!r}, expected endpoints as text.", hint=_ENDPOINTS)
    endpoints = [endpoint.strip() for endpoint in listed if endpoint.strip()]
    for endpoint in endpoints:
        host, _, port = endpoint.rpartition(":")
        if not host or not port.isdecimal() or int(port) not in _PORTS:
            raise ConfigError(
                f"pservers has {endpoint!r}, which is not host:port.", hint=_ENDPOINTS
            )
    return endpoints


__all__ = ["endpoints_of", "trainer_numbers", "whole", "yes_or_no"]
