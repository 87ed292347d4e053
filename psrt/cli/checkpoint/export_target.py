"""The directory of an export: complete under its name, or absent. It replaces nothing."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from psrt.core import whole_file
from psrt.core.errors import ConfigError

FACTS = "export.json"
_FOLDERS = ("dense", "sparse")


def check_new(place: Path) -> None:
    """Raise `ConfigError` if there is something at `place` already."""
    if place.exists() or place.is_symlink():
        raise ConfigError(
            f"{place} exists; an export replaces nothing, and nothing was written.",
            hint="Name a directory that does not exist, or remove this one.",
        )


@contextmanager
def new_directory(place: Path) -> Iterator[Path]:
    """Make a directory that gets the name `place` once the block has ended without an error."""
    check_new(place)
    unfinished = place.with_name(f"{place.name}.{os.getpid()}.tmp")
    try:
        for folder in _FOLDERS:
            (unfinished / folder).mkdir(parents=True)
        yield unfinished
        for path in (*(unfinished / folder for folder in _FOLDERS), unfinished):
            whole_file.sync_directory(path)
        check_new(place)
        unfinished.rename(place)
        whole_file.sync_directory(place.resolve().parent)
    except OSError as error:
        raise ConfigError(
            f"the export to {place} failed ({error.strerror or error}); nothing was left there.",
            hint="Name a directory that may be written, on a disk with room for the export.",
        ) from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def write_facts(root: Path, facts: Mapping[str, Any]) -> None:
    """Write what the files of an export hold, as JSON."""
    whole_file.write(root / FACTS, json.dumps(facts, indent=1) + "\n")
