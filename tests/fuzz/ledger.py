"""A file of what a long run has done, so that a later run goes on where that one ended."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Ledger:
    """Parts by stage and number, a line of JSON each; without a path they are kept in memory.

    A line that a killed run has torn is left out, and its part is done again.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._parts: dict[str, dict[int, dict[str, Any]]] = {}
        if path is not None and path.exists():
            self._read(path)

    def _read(self, path: Path) -> None:
        whole, _, torn = path.read_bytes().rpartition(b"\n")
        for line in whole.splitlines():
            entry = json.loads(line)
            self._parts.setdefault(entry["stage"], {})[entry["number"]] = entry["part"]
        if torn:
            os.truncate(path, path.stat().st_size - len(torn))

    def parts(self, stage: str) -> dict[int, dict[str, Any]]:
        """The parts of a stage that are done, by number."""
        return dict(self._parts.get(stage, {}))

    def add(self, stage: str, number: int, part: dict[str, Any]) -> None:
        self._parts.setdefault(stage, {})[number] = part
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps({"stage": stage, "number": number, "part": part}) + "\n")

    @contextlib.contextmanager
    def folder(self, name: str) -> Iterator[Path]:
        """A folder that is kept with the file; without one it is temporary."""
        if self._path is None:
            with tempfile.TemporaryDirectory(prefix="psrt-fuzz-") as temporary:
                yield Path(temporary)
        else:
            kept = self._path.with_name(f"{self._path.name}.{name}")
            kept.mkdir(exist_ok=True)
            yield kept
