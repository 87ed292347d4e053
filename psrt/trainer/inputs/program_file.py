"""A job's Python file: find it, import it, call its `build()`.

Three failures have three messages, because they have three remedies: the file does not exist, it
has no usable `build()`, or the user's own code raised; then the message names the user's line, not
psrt's. The folder of the file is first on `sys.path` from then on, as under `python FILE`, so it
may import the files beside it.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from psrt.core.errors import ConfigError, InternalError, ProgramError, PsrtError
from psrt.core.hints import did_you_mean
from psrt.trainer.inputs.user_errors import hint_for


def load_build(path: Path) -> Callable[..., Any]:
    """Return the function `build` of the job's Python file."""
    module = _import(path)
    build = getattr(module, "build", None)
    if not callable(build):
        raise ConfigError(
            f"{path} has no function build().",
            hint="Define `def build(...) -> psrt.Model` at the top level of the file.",
        )
    return build  # type: ignore[no-any-return]


def call_build(build: Callable[..., Any], params: Mapping[str, Any], path: Path) -> Any:
    """Call `build(**params)`; parameters that do not fit raise `ConfigError`."""
    try:
        inspect.signature(build).bind(**params)
    except TypeError as error:
        known = inspect.signature(build).parameters
        has = f"The file declares build({', '.join(map(str, known.values()))})."
        unknown = [name for name in params if name not in known]
        raise ConfigError(
            f"[job.params] does not fit build() of {path}: {error}.",
            hint=f"{did_you_mean(unknown[0], known) if unknown else ''} {has}".strip(),
        ) from error
    return run_user_code(lambda: build(**params), path, "build()")


def run_user_code(call: Callable[[], Any], path: Path, doing: str) -> Any:
    """Call a function of the user; an exception of its own names the last line in `path`."""
    try:
        return call()
    except PsrtError:
        raise
    except Exception as error:
        raise ProgramError(
            f"{doing} of the job raised {type(error).__name__} at {_user_line(error, path)}: "
            f"{error}",
            hint=hint_for(error)
            or "This is the job's own code; --debug prints the whole traceback.",
        ) from error


def put_on_path(folder: Path) -> None:
    """Let the job's program, and what it imports later, import the files of its folder."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _import(path: Path) -> ModuleType:
    if not path.is_file():
        raise ConfigError(
            f"the job's program {path} does not exist.",
            hint="[job] program is a path relative to the TOML file.",
        )
    spec = importlib.util.spec_from_file_location(f"psrt_job_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ConfigError(
            f"the job's program {path} is not a Python file.", hint="Name a .py file."
        )
    put_on_path(path.resolve().parent)
    module = importlib.util.module_from_spec(spec)
    loader = spec.loader
    run_user_code(lambda: loader.exec_module(module), path, "importing the program")
    return module


def _user_line(error: BaseException, path: Path) -> str:
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"{path}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename) == path] or list(frames)
    if not own:
        raise InternalError(f"no traceback in {error!r}")
    return f"{own[-1].filename}:{own[-1].lineno}"
