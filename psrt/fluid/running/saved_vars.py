"""Values of vars as array files: one `.npy` per var in a directory, or one `.npz` of all.

Arrays only, never pickle. Optimizer state is not saved and begins anew after a load. Values of a
trainer's program are pulled from the pservers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote, unquote

import numpy as np

from psrt.core.errors import DataError, ErrorCode, ProgramError
from psrt.core.types import Array
from psrt.executor.memory import initial_values
from psrt.fluid.framework import FluidProgram, default_main_program
from psrt.fluid.names import FluidParameter, Variable
from psrt.fluid.running import saved_tables
from psrt.fluid.running.scope import FluidScope, global_scope
from psrt.fluid.running.values import names_of

Predicate: TypeAlias = Callable[[Variable], bool]
Directory: TypeAlias = str | Path
AnyProgram: TypeAlias = FluidProgram | None


def save_vars(
    executor: Any,
    dirname: Directory,
    main_program: AnyProgram = None,
    vars: Sequence[Variable | str] | None = None,
    predicate: Predicate | None = None,
    filename: str | None = None,
) -> None:
    """Write `vars`, or those the predicate holds for, from the global scope into `dirname`.

    With a distributed table among them, `dirname` becomes a saved model, complete or not at all.
    """
    program = default_main_program() if main_program is None else main_program
    names = _chosen(program, vars, predicate)
    if saved_tables.distributed(program, names):
        saved_tables.save(program, names, dirname, filename)
        return
    scope = newest(program, names)
    arrays = {name: np.asarray(scope[name]) for name in names}
    directory = Path(dirname)
    directory.mkdir(parents=True, exist_ok=True)
    if filename is not None:
        with (directory / filename).open("wb") as file:
            np.savez(file, allow_pickle=False, **{quote(n, safe=""): a for n, a in arrays.items()})
        return
    for name, values in arrays.items():
        np.save(directory / _file(name), values, allow_pickle=False)


def load_vars(
    executor: Any,
    dirname: Directory,
    main_program: AnyProgram = None,
    vars: Sequence[Variable | str] | None = None,
    predicate: Predicate | None = None,
    filename: str | None = None,
) -> None:
    """Read files of `save_vars`, or a saved model, into the global scope.

    Rows of a distributed table are read from the files of a saved model when they are looked up.

    Raises `DataError` naming a file that is missing or has not the var's shape, and `ProgramError`
    for a transpiled program.
    """
    program = default_main_program() if main_program is None else main_program
    if program.job is not None:
        raise ProgramError(
            "Vars were to be loaded into a transpiled program, whose parameters are on pservers.",
            hint="Load before transpile to compute here; servers begin with a cut by "
            "fleet.init_server(directory).",
        )
    directory, scope = Path(dirname), global_scope()
    if saved_tables.is_saved_model(directory):
        saved_tables.load(program, _chosen(program, vars, predicate), directory)
        return
    found = _read_all(directory / filename) if filename is not None else None
    for name in _chosen(program, vars, predicate):
        path = directory / (filename or _file(name))
        values = found.get(name) if found is not None else _read(path)
        var = program.graph.vars[name]
        if values is None or values.shape != var.shape:
            what = "does not have it" if values is None else f"holds shape {values.shape}"
            raise DataError(f"{name} has shape {var.shape}, but {path} {what}.")
        scope[name] = values.astype(var.dtype, copy=False)


def save_params(
    executor: Any, dirname: Directory, main_program: AnyProgram = None, filename: str | None = None
) -> None:
    """Write every parameter."""
    save_vars(executor, dirname, main_program, None, is_parameter, filename)


def load_params(
    executor: Any, dirname: Directory, main_program: AnyProgram = None, filename: str | None = None
) -> None:
    """Read every parameter."""
    load_vars(executor, dirname, main_program, None, is_parameter, filename)


def save_persistables(
    executor: Any, dirname: Directory, main_program: AnyProgram = None, filename: str | None = None
) -> None:
    """Write every parameter and the counts of metrics."""
    save_vars(executor, dirname, main_program, None, is_persistable, filename)


def load_persistables(
    executor: Any, dirname: Directory, main_program: AnyProgram = None, filename: str | None = None
) -> None:
    """Read every parameter and the counts of metrics."""
    load_vars(executor, dirname, main_program, None, is_persistable, filename)


def is_parameter(var: Variable) -> bool:
    """Return whether a variable is a parameter."""
    return isinstance(var, FluidParameter)


def is_persistable(var: Variable) -> bool:
    """Return whether a variable outlives a step."""
    return var.var.kind in ("parameter", "state")


def _chosen(
    program: FluidProgram, vars: Sequence[Variable | str] | None, predicate: Predicate | None
) -> list[str]:
    if vars is not None:
        return names_of(list(vars))
    fits = predicate or is_persistable
    return [variable.name for variable in program.list_vars() if fits(variable)]


def newest(program: FluidProgram, names: Iterable[str]) -> FluidScope:
    """Return the global scope; of a trainer, a scope with the values of its pservers."""
    scope, records = global_scope(), program.graph.parameters
    connection = program.origin.connection
    if connection is None:
        return scope
    connection.executor.pull()
    whole = FluidScope()
    for name in names:
        whole[name] = scope[name] if name in scope else initial_values(records[name])
        if name in records and records[name].sparse:
            for ids, rows in connection.executor.rows(name):
                whole[name][ids] = rows
    return whole


def _file(name: str) -> str:
    return f"{quote(name, safe='')}.npy"


def _read(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except OSError as error:
        what = f"{path} cannot be read: {error.strerror}."
        raise DataError(what, code=ErrorCode.DATA_MISSING) from error
    except ValueError as error:
        raise DataError(f"{path} is no array file: {error}.") from error


def _read_all(path: Path) -> dict[str, Array]:
    with _read(path) as file:
        return {unquote(name): file[name] for name in file.files}
