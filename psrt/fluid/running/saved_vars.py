"""Values of vars in PaddlePaddle's files: one for each var in a directory, or one of all.

Files of an earlier psrt, `.npy` and `.npz`, are read, too. Optimizer state is not saved and begins
anew after a load. Values of a trainer's program are pulled from the pservers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote, unquote

import numpy as np

from psrt.core.errors import DataError, ProgramError
from psrt.core.types import Array
from psrt.executor.memory import initial_values
from psrt.fluid.framework import FluidProgram, default_main_program
from psrt.fluid.names import FluidParameter, Variable
from psrt.fluid.running import paddle_files, saved_tables
from psrt.fluid.running.beginnings import begin_at, begin_with
from psrt.fluid.running.scope import FluidScope, global_scope
from psrt.fluid.running.values import names_of
from psrt.partition.transpiler import PserverProgram

Predicate: TypeAlias = Callable[[Variable], bool]
Directory: TypeAlias = str | Path
AnyProgram: TypeAlias = FluidProgram | Any | None
"""A program, a compiled one, or None for the default one."""


def save_vars(
    executor: Any,
    dirname: Directory | None,
    main_program: AnyProgram = None,
    vars: Sequence[Variable | str] | None = None,
    predicate: Predicate | None = None,
    filename: str | None = None,
) -> bytes | None:
    """Write `vars`, or those the predicate holds for, from the global scope into `dirname`.

    With a distributed table among them, `dirname` becomes a saved model, complete or not at all.
    Without a `dirname`, returns what one file of all would hold.
    """
    program = program_of(main_program)
    names = _chosen(program, vars, predicate)
    if dirname is not None and saved_tables.distributed(program, names):
        saved_tables.save(program, names, dirname, filename)
        return None
    scope = newest(program, names)
    arrays = {name: scope[name] for name in names}
    if dirname is None:
        return paddle_files.arrays_as_bytes(arrays)
    paddle_files.write_arrays(Path(dirname), arrays, filename)
    return None


def load_vars(
    executor: Any,
    dirname: Directory,
    main_program: AnyProgram = None,
    vars: Sequence[Variable | str] | None = None,
    predicate: Predicate | None = None,
    filename: str | None = None,
) -> None:
    """Read files of `save_vars`, or a saved model, into the global scope.

    Rows of a distributed table are read from the files of a saved model when they are looked up. A
    pserver's program keeps the parameters for when it is run.

    Raises `DataError` naming a file that is missing or has not the var's shape, and `ProgramError`
    for a trainer's program.
    """
    program = program_of(main_program)
    directory, scope = Path(dirname), global_scope()
    if isinstance(program.job, PserverProgram):
        _load_into_pserver(program, directory, predicate, filename)
        return
    if program.job is not None:
        raise ProgramError(
            "Vars were to be loaded into a transpiled program, whose parameters are on pservers.",
            hint="Load before transpile to compute here, or into the program of each pserver.",
        )
    if saved_tables.is_saved_model(directory):
        saved_tables.load(program, _chosen(program, vars, predicate), directory)
        return
    names = _chosen(program, vars, predicate)
    for name, values in _fitting(program, names, directory, filename).items():
        scope[name] = values


def _fitting(
    program: FluidProgram, names: Sequence[str], directory: Path, filename: str | None
) -> dict[str, Array]:
    """The arrays of vars, in their shapes and dtypes."""
    found, fitting = _arrays(directory, names, filename), dict[str, Array]()
    for name in names:
        values, var = found.get(name), program.graph.vars[name]
        if values is None or values.size != math.prod(var.shape):
            what = "does not have it" if values is None else f"holds shape {values.shape}"
            raise DataError(f"{name} has shape {var.shape}, but {directory} {what}.")
        fitting[name] = values.reshape(var.shape).astype(var.dtype, copy=False)
    return fitting


def _load_into_pserver(
    program: FluidProgram, directory: Path, predicate: Predicate | None, filename: str | None
) -> None:
    """Let a pserver begin with the parameters in a directory; metrics are those of trainers."""
    if saved_tables.is_saved_model(directory):
        begin_at(program, directory)
        return
    whole = program.origin
    names = [name for name in _chosen(whole, None, predicate) if name in whole.graph.parameters]
    begin_with(program, whole.graph, _fitting(whole, names, directory, filename))


def save_params(
    executor: Any,
    dirname: Directory | None,
    main_program: AnyProgram = None,
    filename: str | None = None,
) -> bytes | None:
    """Write every parameter, see `save_vars`."""
    return save_vars(executor, dirname, main_program, None, is_parameter, filename)


def load_params(
    executor: Any, dirname: Directory, main_program: AnyProgram = None, filename: str | None = None
) -> None:
    """Read every parameter."""
    load_vars(executor, dirname, main_program, None, is_parameter, filename)


def save_persistables(
    executor: Any,
    dirname: Directory | None,
    main_program: AnyProgram = None,
    filename: str | None = None,
) -> bytes | None:
    """Write every parameter and the counts of metrics, see `save_vars`."""
    return save_vars(executor, dirname, main_program, None, is_persistable, filename)


def load_persistables(
    executor: Any, dirname: Directory, main_program: AnyProgram = None, filename: str | None = None
) -> None:
    """Read every parameter and the counts of metrics."""
    load_vars(executor, dirname, main_program, None, is_persistable, filename)


def program_of(given: Any) -> FluidProgram:
    """Return a program, that of a compiled one, or the default one for None.

    Raises `NotAProgramError` for anything else.
    """
    if given is None:
        return default_main_program()
    program = given if isinstance(given, FluidProgram) else getattr(given, "program", None)
    if not isinstance(program, FluidProgram):
        raise NotAProgramError(f"main_program is {given!r}, which is not a Program.")
    return program


class NotAProgramError(ProgramError, TypeError):
    """Something else than a program was given for one."""


def is_parameter(var: Variable) -> bool:
    """Return whether a variable is a parameter."""
    return isinstance(var, FluidParameter)


def is_persistable(var: Variable) -> bool:
    """Return whether a variable outlives a step."""
    return var.var.kind in ("parameter", "state")


def get_program_persistable_vars(program: FluidProgram) -> list[Variable]:
    """Return the variables of a program that outlive a step."""
    return [variable for variable in program.list_vars() if is_persistable(variable)]


def get_program_parameter(program: FluidProgram) -> list[Variable]:
    """Return the parameters of a program."""
    return [variable for variable in program.list_vars() if is_parameter(variable)]


def get_parameter_value(para: Variable, executor: Any) -> Array:
    """Return a parameter's array in the global scope; raises `ProgramError` for another var."""
    if not is_parameter(para):
        raise ProgramError(f"{para.name} is no parameter.")
    program = para.program
    assert isinstance(program, FluidProgram)
    return newest(program, [para.name])[para.name]


def get_parameter_value_by_name(name: str, executor: Any, program: AnyProgram = None) -> Array:
    """Return the array of the parameter of this name, see `get_parameter_value`."""
    return get_parameter_value(program_of(program).variable(name), executor)


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


def _arrays(directory: Path, names: Sequence[str], filename: str | None) -> dict[str, Array]:
    """Read the files of vars, of PaddlePaddle or of an earlier psrt."""
    if filename is not None:
        with suppress(OSError), (directory / filename).open("rb") as file:
            if file.read(2) == b"PK":  # a .npz file is a ZIP archive
                return _of_archive(directory / filename)
        return paddle_files.read_arrays(directory, names, filename)
    old = {name: directory / f"{quote(name, safe='')}.npy" for name in names}
    found = {name: _array(path) for name, path in old.items() if path.is_file()}
    rest = [name for name in names if name not in found]
    return found | paddle_files.read_arrays(directory, rest, None)


def _array(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except ValueError as error:
        raise DataError(f"{path} is no array file: {error}.") from error


def _of_archive(path: Path) -> dict[str, Array]:
    with _array(path) as file:
        return {unquote(name): file[name] for name in file.files}
