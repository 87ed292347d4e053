"""Settings of a running process that are read again: which take effect, which keep their values."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from psrt.config.settings import Setting, settings_of

RELOADABLE = ("log_level", "log_format")
"""Settings that take effect while a process runs."""


@dataclass(frozen=True)
class Reloaded:
    """The settings in force from now on; one line for each that changes or keeps its value."""

    config: Any
    changed: tuple[str, ...]
    kept: tuple[str, ...]


def reloaded(section: str, running: Any, read: Any) -> Reloaded:
    """Compare the settings of a `running` process with those that were `read` again."""
    differing = [
        setting
        for setting in settings_of(section, type(running))
        if getattr(running, setting.name) != getattr(read, setting.name)
    ]
    taken = {s.name: getattr(read, s.name) for s in differing if s.name in RELOADABLE}
    return Reloaded(
        dataclasses.replace(running, **taken),
        tuple(f"{s.key} is {taken[s.name]!r} from now on" for s in differing if s.name in taken),
        tuple(_kept(s, running, read) for s in differing if s.name not in taken),
    )


def _kept(setting: Setting, running: Any, read: Any) -> str:
    old, new = getattr(running, setting.name), getattr(read, setting.name)
    return f"{setting.key} stays {old!r}, which cannot change while the process runs, not {new!r}"
