"""Places of a launch's own output: directories, and the report of the whole job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from psrt.core import whole_file
from psrt.core.errors import ConfigError


def make_directory(name: str, path: str) -> None:
    """Make a directory at the start: a failure at the end of a long training comes too late."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"launch.{name} needs the directory {path!r}, which cannot be made: {error.strerror}.",
            hint="Choose a directory you may write to.",
        ) from error


def check_report(path: str) -> None:
    """Raise `ConfigError` at the start if the report cannot be written at the end."""
    try:
        if path:
            whole_file.probe(Path(path))
    except OSError as error:
        raise whole_file.unwritable(path, "--report", error) from error


def write_report(path: str, report: dict[str, Any]) -> None:
    """Write the report as JSON, unless `path` is empty; raises `ConfigError`."""
    try:
        if path:
            whole_file.write(Path(path), json.dumps(report, indent=2) + "\n")
    except OSError as error:
        raise whole_file.unwritable(path, "--report", error) from error
