"""PaddlePaddle's own files in a directory: saved vars, and models to predict with.

__model__, or another name   the program
NAME                         a var each, or all of them in one file, in the order of their names
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from psrt.core.errors import DataError, ErrorCode
from psrt.core.types import Array
from psrt.fluid.formats import ReadProgram, read_program, read_tensors, write_program, write_tensors
from psrt.graph.program import Program


def write_arrays(directory: Path, arrays: Mapping[str, Array], filename: str | None) -> None:
    """Write a file for each array, or `filename` with all of them."""
    directory.mkdir(parents=True, exist_ok=True)
    if filename is not None:
        with (directory / filename).open("wb") as file:
            write_tensors(file, (np.asarray(arrays[name]) for name in sorted(arrays)))
        return
    for name, values in arrays.items():
        path = path_of(directory, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            write_tensors(file, [np.asarray(values)])


def read_arrays(directory: Path, names: Sequence[str], filename: str | None) -> dict[str, Array]:
    """Return arrays by name, of a file each or all in `filename`.

    Raises `DataError` naming a file that is missing, damaged, or has another number of arrays.
    """
    if filename is None:
        paths = ((name, path_of(directory, name)) for name in names)
        return {name: _read(path, 1)[0] for name, path in paths}
    found = _read(directory / filename, len(names))
    return dict(zip(sorted(names), found, strict=True))


def read_all(directory: Path, names: Sequence[str] | None) -> dict[str, Array]:
    """Return the arrays of a directory with a file for each var: `names`, or all that are there.

    Raises `DataError` naming a file that is missing or is none of a var.
    """
    if names is None:
        files = (path for path in directory.rglob("*") if path.is_file())
        names = sorted(str(path.relative_to(directory)) for path in files)
    return read_arrays(directory, names, None)


def arrays_as_bytes(arrays: Mapping[str, Array]) -> bytes:
    """Return what a file with all of these arrays holds."""
    file = io.BytesIO()
    write_tensors(file, (np.asarray(arrays[name]) for name in sorted(arrays)))
    return file.getvalue()


def model_of_bytes(program: bytes, arrays: bytes) -> tuple[ReadProgram, dict[str, Array]]:
    """Return the program of these bytes, and its parameters; raises `DataError` for others."""
    made = read_program(program, "The program in memory")
    found = list(read_tensors(io.BytesIO(arrays), "What is in memory"))
    if len(found) != len(made.parameters):
        raise DataError(f"{len(found)} vars are in memory; the program has {len(made.parameters)}.")
    return made, dict(zip(sorted(made.parameters), found, strict=True))


def path_of(directory: Path, name: str) -> Path:
    """Return the file of a var; raises `DataError` for a name that leaves the directory."""
    if ".." in Path(name).parts or Path(name).is_absolute():
        raise DataError(f"A var is named {name}, which is no file in {directory}.")
    return directory / name


def model_file(directory: Path, model_filename: str | None, default: str) -> Path | None:
    """Return the program file of a model in `directory`, or one that begins with that path."""
    longer = Path(f"{directory}.pdmodel")
    known = (directory / (model_filename or default), longer)
    return next((path for path in known if path.is_file()), None)


def read_model(path: Path, params_filename: str | None) -> tuple[ReadProgram, dict[str, Array]]:
    """Return the program of a file, and its parameters from the files beside it."""
    made = read_program(path.read_bytes(), str(path))
    beside = path.with_suffix(".pdiparams")
    if params_filename is None and path.suffix == ".pdmodel" and beside.is_file():
        params_filename = beside.name
    return made, read_arrays(path.parent, made.parameters, params_filename)


def write_model(
    path: Path,
    program: Program,
    feeds: Sequence[str],
    fetches: Sequence[str],
    parameters: Mapping[str, Array],
    params_filename: str | None,
) -> bool:
    """Write the file of a program and those of its parameters; False if Fluid lacks one of its ops.

    Nothing is written then.
    """
    data = write_program(program, feeds, fetches)
    if data is None:
        return False
    path.write_bytes(data)
    write_arrays(path.parent, parameters, params_filename)
    return True


def _read(path: Path, count: int) -> list[Array]:
    try:
        with path.open("rb") as file:
            found = list(read_tensors(file, str(path)))
    except OSError as error:
        what = f"{path} cannot be read: {error.strerror}."
        raise DataError(what, code=ErrorCode.DATA_MISSING) from error
    if len(found) != count:
        raise DataError(f"{path} has {len(found)} vars, where {count} were to be read.")
    return found


__all__ = [
    "arrays_as_bytes",
    "model_file",
    "model_of_bytes",
    "path_of",
    "read_all",
    "read_arrays",
    "read_model",
    "write_arrays",
    "write_model",
]
