"""Functions of the user's that a job file names, called after each epoch of trainer 0."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from psrt.config.sections import TrainerConfig
from psrt.core.errors import ConfigError
from psrt.core.hints import did_you_mean
from psrt.core.specs import Collective
from psrt.trainer.inputs import Job, run_user_code
from psrt.trainer.measuring import EpochLosses
from psrt.trainer.training import Say

Callback: TypeAlias = Callable[[EpochLosses], object]


class EpochCallbacks:
    """Calls functions after each epoch; `has_ended` once one has returned True.

    `end` ends the training of the other trainers.
    """

    def __init__(
        self, functions: Sequence[Callback], end: Callable[[], None], path: Path, say: Say
    ) -> None:
        self._functions, self._end, self._path, self._say = functions, end, path, say
        self.has_ended = False

    def after(self, epoch: EpochLosses) -> None:
        """Call each function; raises `ProgramError` that names the line at which one failed."""
        for function in self._functions:
            name = getattr(function, "__name__", repr(function))
            returned = run_user_code(partial(function, epoch), self._path, f"callback {name}")
            if returned is True and not self.has_ended:
                self.has_ended = True
                self._say(f"ends early: callback {name} returned True after epoch {epoch.epoch}")
                self._end()


def callbacks_of(
    settings: TrainerConfig, job: Job, end: Callable[[], None], say: Say
) -> EpochCallbacks:
    """The callbacks of trainer 0, none of the others; raises `ConfigError` for one not found."""
    names = () if settings.trainer_id else settings.callbacks
    is_group = isinstance(job.config.communication, Collective) and not settings.local
    if is_group and names:
        raise ConfigError(
            "[trainer] callbacks is set, but trainers of mode collective end together only.",
            hint="Leave callbacks out, or train in another mode.",
        )
    return EpochCallbacks([_function(name) for name in names], end, job.config.program_path, say)


def _function(name: str) -> Callback:
    """The function of `module:function`; the folder of the job's program is on the path."""
    module_name, _, function_name = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except (ImportError, ValueError) as error:
        raise ConfigError(
            f"[trainer] callbacks names {name!r}, which cannot be imported: {error}.",
            hint="Write it as module:function; modules beside the job's program are found.",
        ) from error
    function = getattr(module, function_name, None)
    if not callable(function):
        raise ConfigError(
            f"[trainer] callbacks names {name!r}, but {module_name} has no such function.",
            hint=did_you_mean(function_name, vars(module), "Write it as module:function."),
        )
    return function  # type: ignore[no-any-return]
