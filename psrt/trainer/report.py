"""JSON files that a trainer writes, such as the summary of `--report`: complete or absent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from psrt.core.errors import ConfigError


def check_target(path: str, flag: str = "--report") -> None:
    """Refuse, before any work, a file that could not be written after it."""
    directory = Path(path).parent
    if path and not directory.is_dir():
        raise ConfigError(
            f"{flag} {path} needs the directory {directory}, which does not exist.",
            hint="Make the directory, or name another file.",
        )


def write(path: str, facts: Mapping[str, Any], flag: str = "--report") -> None:
    """Write `facts` as one JSON object; nothing if `path` is empty."""
    if not path:
        return
    target = Path(path)
    unfinished = target.with_name(target.name + ".tmp")
    try:
        unfinished.write_text(json.dumps(facts, indent=1) + "\n")
        unfinished.replace(target)
    except OSError as error:
        raise ConfigError(
            f"{flag} {path} cannot be written ({error.strerror}).",
            hint=f"Give {flag} a file in a directory that exists and may be written.",
        ) from error
