"""A process that is ready to take a killed pserver's place: all is loaded, and no tables exist.

It waits for one line on its standard input: JSON with the flags of the pserver to become, and the
file of its log. A supervisor writes the line; when it closes the pipe instead, the process ends.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from psrt.config.sections import PserverConfig
from psrt.core.errors import ConfigError
from psrt.kernels.jit import load_cached, set_cache_dir, warm_up

log = logging.getLogger("psrt.pserver")

OF_TABLES = ("freeze", "rule", "policy", "half")
"""Groups of kernels that tables need; most jobs need few, so none is compiled ahead."""


def wait_to_take_over(config: PserverConfig, lines: IO[str]) -> Sequence[str] | None:
    """Load all that a pserver needs, then wait; returns the flags of the pserver to become.

    None if `lines` ended. From then on standard output and error go to the log of that pserver.
    Raises `ConfigError` for another line.
    """
    if config.cache_dir:
        set_cache_dir(config.cache_dir)
    warm_up(["pserver"])
    load_cached(OF_TABLES)
    log.info("stands by")
    line = lines.readline()
    if not line:
        return None
    flags, path = _read(line)
    log.info("takes the place of a killed pserver; see %s", path)
    _write_to(path)
    return flags


def _read(line: str) -> tuple[list[str], Path]:
    try:
        found = json.loads(line)
        return [str(flag) for flag in found["flags"]], Path(found["log"])
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"a pserver that stands by was sent {line!r}, which is no JSON with flags and log.",
            hint='Write {"flags": ["--port", "6170", "--recover"], "log": "pserver.log"} in one '
            "line.",
        ) from error


def _write_to(path: Path) -> None:
    """Let standard output and standard error append to a file."""
    with path.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
