"""Log set-up for processes: one line per event, role first, to stderr.

Levels: debug = each message; info = at most once in a few seconds; warning = may heal itself;
error = something was lost.
"""

from __future__ import annotations

import logging
import sys
from typing import TextIO

LEVELS = ("debug", "info", "warning", "error")


def configure(role: str, level: str = "info", stream: TextIO | None = None) -> None:
    """Send the `psrt` loggers to `stream` (stderr) as `time role level message`."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(
        logging.Formatter(f"%(asctime)s {role} %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S")
    )
    root = logging.getLogger("psrt")
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False
