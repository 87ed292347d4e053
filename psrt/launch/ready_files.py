"""Facts that pservers write for their launcher: the endpoint, and a changed number of trainers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from psrt.launch.plan import Command

TrainersOf: TypeAlias = Callable[[int], list[Command]]
"""Returns the commands of all trainers of a job that has so many."""


def no_trainers(trainers: int) -> list[Command]:
    """The `TrainersOf` of a job whose number of trainers does not change."""
    return []


def endpoint_in(ready_file: Path) -> str:
    """The endpoint in a ready file, which a pserver writes atomically; empty until it exists."""
    return str(_facts(ready_file).get("endpoint", ""))


def trainers_in(ready_file: Path) -> int:
    """The number of trainers that the job has gone on with; 0 = it has not changed."""
    return int(_facts(ready_file).get("trainers", 0))


def _facts(ready_file: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(ready_file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
