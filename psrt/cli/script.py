"""`psrt trainer train.py`: a Python file run as `__main__` in this process, as one of the trainers.

Flags override `psrt.init` in the script and the environment, for it and its children: they are
exported by the variables of the same settings. Flags that only apply to a job are refused. The exit
code is the script's. An uncaught error is printed whole; its exit code is 1, or that of the error
if psrt raised it.
"""

from __future__ import annotations

import contextlib
import runpy
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from psrt.config.load import environment, export, is_debugging, load
from psrt.config.overrides import GivenValue
from psrt.config.sections import TrainerConfig
from psrt.config.settings import Setting, settings_of
from psrt.core import log
from psrt.core.errors import ConfigError, PsrtError
from psrt.core.process import shortened
from psrt.core.service_manager import reporter_for
from psrt.observe.traces import traces

SUFFIX = ".py"
ROLE = ("endpoints", "trainers", "trainer_id", "cpu_num")
"""Settings that a script reads by `psrt.init`, a role maker, or from its environment."""
_ACCESS = ("token_file", "tls_cert", "tls_key", "tls_ca", "insecure")
_WATCHED = ("log_level", "log_format", "metrics", "trace_every")
OF_PROCESS = ("cpu_threads", "cache_dir", *_WATCHED, *_ACCESS)


def run_script(path: str, flags: Mapping[str, Any], arguments: Sequence[str]) -> int:
    """Run the script with `flags` by name of setting (None: not given); returns its exit code.

    A `SystemExit` of the script passes through.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    _check(path, given)
    settings = load(TrainerConfig, flags=given, with_host=True).config
    export(_by_variable(given))
    every = settings.trace_every
    traced = traces("trainer", every > 0, environment(), every, trainer=settings.trainer_id)
    prepared = _prepared(settings, given)
    with traced, prepared, _as_main(path, arguments), reporter_for(environment()) as ours:
        ours.ready(lambda: f"runs {path}")
        return _run(path)


def _check(path: str, given: Mapping[str, Any]) -> None:
    if not Path(path).is_file():
        raise ConfigError(f"{path} is not a file.", hint="Check the path of the script.")
    for setting in _settings():
        if setting.name in given and setting.name not in (*ROLE, *OF_PROCESS):
            raise ConfigError(
                f"{setting.flag} has no effect on {path}: a script decides that itself.",
                hint=f"Leave out {setting.flag}. It belongs to jobs, which are TOML files.",
            )


def _by_variable(given: Mapping[str, Any]) -> dict[str, GivenValue]:
    """The settings of the role, by the newest variable of each."""
    own = [setting for setting in _settings() if setting.name in ROLE and setting.name in given]
    values = {s.role_variables[0]: GivenValue(str(given[s.name]), f"flag {s.flag}") for s in own}
    return {"TRAINING_ROLE": GivenValue("TRAINER", "psrt trainer"), **values}


def _settings() -> list[Setting]:
    return [s for s in settings_of("trainer", TrainerConfig) if not s.positional]


@contextlib.contextmanager
def _prepared(settings: TrainerConfig, given: Mapping[str, Any]) -> Iterator[None]:
    """Apply flags for logs, cache and threads; without them a script decides itself."""
    if "log_level" in given or "log_format" in given:
        role = f"trainer-{settings.trainer_id}"
        log.configure(role, settings.log_level, form=settings.log_format)
    if any(getattr(settings, name) for name in _ACCESS):
        from psrt.trainer.training import assume_identity

        assume_identity(settings)
    if settings.cache_dir:
        from psrt.kernels.jit import set_cache_dir

        set_cache_dir(settings.cache_dir)
    with ExitStack() as stack:
        if settings.metrics:
            from psrt.trainer.observing import observed_script

            stack.enter_context(observed_script(settings.metrics))
        if "cpu_threads" in given:
            from threadpoolctl import threadpool_limits

            stack.enter_context(threadpool_limits(settings.cpu_threads, user_api="blas"))
        yield


@contextlib.contextmanager
def _as_main(path: str, arguments: Sequence[str]) -> Iterator[None]:
    """Set `sys.argv` and the first of `sys.path` as `python path arguments` does."""
    argv, first = sys.argv, str(Path(path).resolve().parent)
    sys.argv = [path, *arguments]
    sys.path.insert(0, first)
    try:
        yield
    finally:
        sys.argv = argv
        sys.path.remove(first)


def _run(path: str) -> int:
    try:
        runpy.run_path(path, run_name="__main__")
    except BaseException as error:
        _set_last_value(error)
        if not isinstance(error, Exception):
            raise
        trace = _of_script(error, path)
        short = trace if is_debugging() else shortened(error, trace)
        traceback.print_exception(error.with_traceback(short))
        return error.spec.exit_code if isinstance(error, PsrtError) else 1
    return 0


def _set_last_value(error: BaseException) -> None:
    """Set `sys.last_value`, as Python does, so exit handlers can find a script's error.

    An exit code other than 0 counts as an error.
    """
    if not isinstance(error, SystemExit) or error.code not in (None, 0):
        sys.last_value = error


def _of_script(error: Exception, path: str) -> TracebackType | None:
    """The frames from the script's own on, without those of psrt that ran it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != path:
        trace = trace.tb_next
    return trace or error.__traceback__
