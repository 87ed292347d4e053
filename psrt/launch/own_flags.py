"""The flags of a launch, for the command of another one with the same settings."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from psrt.config.load import load
from psrt.config.sections import LaunchConfig
from psrt.config.settings import settings_of
from psrt.launch.plan import job_file


def own_flags(config: LaunchConfig, without: Collection[str] = ()) -> list[str]:
    """Return flags for all settings that the job file alone would not give, and the job file."""
    plain = load(LaunchConfig, file=job_file(config), environ={}).config
    words = []
    for setting in settings_of("launch", LaunchConfig):
        value = getattr(config, setting.name)
        if setting.positional or setting.name in without or value == getattr(plain, setting.name):
            continue
        words.append(_word(setting.flag, value))
    return [*words, config.job]


def _word(flag: str, value: Any) -> str:
    if isinstance(value, bool):
        return flag if value else f"--no-{flag[2:]}"
    return f"{flag}={','.join(value) if isinstance(value, tuple) else value}"
