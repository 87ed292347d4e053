"""A launch's own output: directories, logs and their lines, and the report of the whole job."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from typing import Any

from psrt.core import whole_file
from psrt.core.errors import ConfigError

LAST_LINES = 20


def last_lines(log: Path, count: int = LAST_LINES) -> str:
    """Return the end of a log; empty if there is none."""
    try:
        with log.open(encoding="utf-8", errors="replace") as lines:
            return "".join(deque(lines, maxlen=count)).rstrip()
    except FileNotFoundError:
        return ""


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


def write_text(directory: str, name: str, text: str) -> None:
    """Write a file into the directory of a launch; raises `ConfigError`."""
    try:
        whole_file.write(Path(directory) / name, text + "\n")
    except OSError as error:
        raise whole_file.unwritable(directory, "--log-dir", error) from error


class LineSplitter:
    """Splits a stream of bytes into lines."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # joined once: a line with files has many

    @property
    def rest(self) -> bytes:
        """The unfinished line."""
        return b"".join(self._parts)

    def feed(self, chunk: bytes) -> list[bytes]:
        self._parts.append(chunk)
        if b"\n" not in chunk:
            return []
        *lines, rest = self.rest.split(b"\n")
        self._parts = [rest]
        return lines
