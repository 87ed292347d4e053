"""`fluid.save` and `fluid.load`: a program's values as one file, by Fluid's names.

    PATH.pdparams   parameters        a dict of arrays by name, pickled as Fluid does
    PATH.pdopt      counts of metrics the same; psrt's executors keep the state of optimizers
    PATH.pdmodel    the program's text

A file is read with numpy's arrays alone: any other object in it raises `DataError`. Files that
Fluid wrote are read, too.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from psrt.core.errors import DataError, ErrorCode
from psrt.core.types import Array
from psrt.fluid.framework import FluidProgram
from psrt.fluid.names import Variable
from psrt.fluid.running import paddle_files
from psrt.fluid.running.saved_vars import is_parameter, is_persistable, newest
from psrt.fluid.running.scope import global_scope
from psrt.fluid.running.values import names_of

_PROTOCOL = 2  # that of Fluid
_ARRAYS = {
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy._core.multiarray", "scalar"),
    ("_codecs", "encode"),
}
"""Parts of a pickled array."""


def save(program: FluidProgram, model_path: str | Path) -> None:
    """Write the values of `program` in the global scope to files that begin with `model_path`.

    Values of a trainer's program are pulled from the pservers.
    """
    path = Path(model_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = [var for var in program.list_vars() if is_persistable(var)]
    scope = newest(program, [var.name for var in kept])
    parameters = {var.name: np.asarray(scope[var.name]) for var in kept if is_parameter(var)}
    others = {var.name: np.asarray(scope[var.name]) for var in kept if not is_parameter(var)}
    _file(path, "pdparams").write_bytes(pickle.dumps(parameters, _PROTOCOL))
    _file(path, "pdopt").write_bytes(pickle.dumps(others, _PROTOCOL))
    _file(path, "pdmodel").write_text(str(program))


def load(
    program: FluidProgram,
    model_path: str | Path,
    executor: Any = None,
    var_list: Sequence[Variable] | None = None,
) -> None:
    """Read what `save` wrote into the global scope: all values of `program`, or `var_list`.

    Raises `DataError` naming a value that is missing or has another shape, and a file that is
    missing or damaged.
    """
    state = load_program_state(model_path)
    wanted = names_of(var_list) if var_list else [v.name for v in program.all_parameters()]
    missing = [name for name in wanted if name not in state]
    if missing:
        raise DataError(f"{model_path} does not have {', '.join(missing[:3])}.")
    set_program_state(program, {name: state[name] for name in wanted} if var_list else state)


def load_program_state(
    model_path: str | Path, var_list: Iterable[Variable] | None = None
) -> dict[str, Array]:
    """Return the values of a save, or of a directory of `fluid.io.save_vars`, by name.

    Raises `DataError` for files that are missing or damaged.
    """
    path = Path(model_path)
    if path.is_dir():
        return paddle_files.read_all(path, [var.name for var in var_list] if var_list else None)
    state: dict[str, Array] = {}
    for file in (_file(path, "pdparams"), _file(path, "pdopt")):
        if file.suffix == ".pdparams" or file.exists():
            state |= _read(file)
    if var_list is None:
        return state
    return {var.name: state[var.name] for var in var_list if var.name in state}


def set_program_state(program: FluidProgram, state_dict: Mapping[str, Array]) -> None:
    """Put values into the global scope, by name; names that `program` lacks are left out.

    Raises `DataError` for a value of another shape.
    """
    scope = global_scope()
    for var in program.list_vars():
        if not is_persistable(var) or var.name not in state_dict:
            continue
        values, shape = np.asarray(state_dict[var.name]), var.var.shape
        if values.shape != shape:
            raise DataError(f"{var.name} has shape {shape}, but was given shape {values.shape}.")
        scope[var.name] = values.astype(var.dtype)


def _file(path: Path, kind: str) -> Path:
    return path.with_name(f"{path.name}.{kind}")


def _read(path: Path) -> dict[str, Array]:
    try:
        with path.open("rb") as file:
            found = _Arrays(file).load()
    except OSError as error:
        what = f"{path} cannot be read: {error.strerror}."
        raise DataError(what, code=ErrorCode.DATA_MISSING) from error
    except (pickle.UnpicklingError, EOFError, ValueError, AttributeError, TypeError) as error:
        raise DataError(f"{path} holds no arrays by name: {error}.") from error
    return {name: np.asarray(each) for name, each in found.items() if name not in _NO_VALUES}


_NO_VALUES = ("StructuredToParameterName@@",)
"""A table of names that later versions of Fluid add."""


class _Arrays(pickle.Unpickler):
    """Reads arrays, and refuses the rest: a file may come from anywhere."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ARRAYS:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of an array")
        return super().find_class(module, name)


__all__ = ["load", "load_program_state", "save", "set_program_state"]
