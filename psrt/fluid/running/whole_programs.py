"""Programs saved with all their ops, to train on: the text of a program, and its persistable vars.

`save_inference_model` without targets writes them, as Fluid does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from psrt.core.errors import DataError, ProgramError
from psrt.fluid.framework import FluidProgram
from psrt.fluid.running.saved_vars import load_persistables, save_persistables

_BEGINS = b"psrt-program "


def save_whole(
    path: Path, program: FluidProgram, executor: Any, params_filename: str | None
) -> None:
    """Write the program into the file `path`, and its vars beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    save_persistables(executor, path.parent, program, params_filename)
    path.write_bytes(program.desc.serialize_to_string())


def is_whole(path: Path) -> bool:
    """True if the file holds the text of a program."""
    with path.open("rb") as file:
        return file.read(len(_BEGINS)) == _BEGINS


def load_whole(path: Path, executor: Any, params_filename: str | None) -> FluidProgram:
    """Return the program of a file; its vars go into the global scope.

    Raises `DataError` for a file that is damaged.
    """
    try:
        program = FluidProgram.parse_from_string(path.read_bytes())
    except ProgramError as error:
        raise DataError(f"{path} is no program that was saved whole: {error.message}") from error
    load_persistables(executor, path.parent, program, params_filename)
    return program
