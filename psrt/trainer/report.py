"""JSON files that a trainer writes, such as the summary of `--report`: complete or absent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from psrt.core import whole_file
from psrt.core.errors import ConfigError


def check_target(path: str, flag: str = "--report") -> None:
    """Refuse, before any work, a file that could not be written after it."""
    if not path:
        return
    directory = Path(path).parent
    if not directory.is_dir():
        raise ConfigError(
            f"{flag} {path} needs the directory {directory}, which does not exist.",
            hint="Make the directory, or name another file.",
        )
    try:
        whole_file.probe(Path(path))
    except OSError as error:
        raise whole_file.unwritable(path, flag, error) from error


def write(path: str, facts: Mapping[str, Any], flag: str = "--report") -> None:
    """Write `facts` as one JSON object; nothing if `path` is empty."""
    if not path:
        return
    try:
        whole_file.write(Path(path), json.dumps(facts, indent=1) + "\n")
    except OSError as error:
        raise whole_file.unwritable(path, flag, error) from error
