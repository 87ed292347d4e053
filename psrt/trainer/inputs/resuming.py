"""The check that pservers have the parameters which the state of a trainer goes on from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from psrt.config.sections import JobConfig, TrainerConfig
from psrt.core.errors import ConfigError
from psrt.trainer.inputs.warm_start import warm_start_of


class Updated(Protocol):
    """A job as its pservers have it; `updates` have been applied to its tables."""

    @property
    def updates(self) -> int: ...


def check(
    settings: TrainerConfig, config: JobConfig, steps: int, job: Callable[[], Updated]
) -> None:
    """Raise `ConfigError` for --resume behind `steps` steps if pservers hold initial values.

    A warm start, too, fills tables with what was trained.
    """
    if settings.local or not (settings.resume and steps) or warm_start_of(settings, config):
        return
    if not job().updates:
        raise ConfigError(
            f"--resume {settings.resume} goes on after {steps:,} steps, and the pservers hold "
            "initial values: no update was ever applied to their tables. The data already read "
            "would be left out, and what was learnt from them, too. Nothing was trained.",
            hint="Start the pservers with --resume latest from a cut (--checkpoint-dir), keep "
            "them with --stay, begin with a saved model (--warm-start), or leave out --resume.",
        )
