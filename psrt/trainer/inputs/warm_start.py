"""The warm start of a job: its source and rules, from flags or the job file."""

from __future__ import annotations

from pathlib import Path

from psrt.config.sections import JobConfig, TrainerConfig
from psrt.config.warm_rules import read_warm_rules
from psrt.core.errors import ConfigError
from psrt.core.specs import WarmStart
from psrt.core.urls import is_url


def warm_start_of(settings: TrainerConfig, config: JobConfig) -> WarmStart | None:
    """The warm start that a trainer asks its pservers for; None if there is none.

    Paths of flags are relative to the working directory, those of a job to its file. Raises
    `ConfigError` for illegal rules, for rules without a source, and without pservers.
    """
    source = _place(settings.warm_start, config.warm_start, config)
    rules_file = _place(settings.warm_start_map, config.warm_start_map, config)
    strict = settings.warm_start_strict or config.warm_start_strict
    if not source:
        if rules_file or strict:
            raise ConfigError(
                "a warm start has rules, but no source.",
                hint="Give --warm-start DIR, or warm_start in [job].",
            )
        return None
    if settings.local:
        raise ConfigError(
            "a warm start is read by pservers, and --local has none; nothing was trained.",
            hint="Use psrt launch --pservers 1 --trainers 1 in place of --local.",
        )
    rules, unused = read_warm_rules(rules_file) if rules_file else ((), ())
    return WarmStart(source, rules, unused, strict)


def _place(given: str, of_job: str, config: JobConfig) -> str:
    """An absolute path, since pservers have other working directories, or a URL."""
    if given:
        return given if is_url(given) else str(Path(given).resolve())
    return of_job if not of_job or is_url(of_job) else str(config.resolve(of_job))
