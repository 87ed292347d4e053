"""Parameters of programs with distributed tables, saved as one directory in the form of a model.

No trainer holds such a table as a whole: its rows travel from the pservers to the files page by
page. The directory appears when it is complete. Counts of metrics are not in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from psrt.core.errors import DataError, ProgramError
from psrt.executor.memory import initial_values
from psrt.fluid.framework import FluidProgram
from psrt.fluid.running.scope import global_scope
from psrt.fluid.running.whole_tables import is_held
from psrt.trainer.models import MANIFEST, save_parameters
from psrt.trainer.models import load as load_model


def distributed(program: FluidProgram, names: Iterable[str]) -> list[str]:
    """The distributed tables among the vars `names` that the global scope does not hold."""
    records, scope = program.graph.parameters, global_scope()
    tables = [name for name in names if name in records and records[name].distributed]
    return [name for name in tables if not is_held(program, name, scope)]


def save(
    program: FluidProgram, names: Sequence[str], dirname: str | Path, filename: str | None
) -> None:
    """Write the parameters among `names`, with the rows that the pservers hold.

    Raises `ProgramError` for a program that has not reached its pservers, and for a `filename`.
    """
    table = distributed(program, names)[0]
    if filename is not None:
        raise ProgramError(
            f"{table} is a distributed table; its rows do not go into the one file {filename}.",
            hint="Leave out filename: the directory has a file for each page of rows.",
        )
    connection = program.origin.connection
    if connection is None:
        raise ProgramError(
            f"{table} is a distributed table, whose rows are on pservers; this program has reached "
            "none. Nothing was saved.",
            hint="Save on a trainer, after its first step and before it stops.",
        )
    executor, scope = connection.executor, global_scope()
    executor.pull()
    records = program.graph.parameters
    chosen = [name for name in names if name in records]
    dense = {
        name: scope[name] if name in scope else initial_values(records[name])
        for name in chosen
        if not records[name].sparse
    }
    tables = {name: partial(executor.rows, name) for name in chosen if records[name].sparse}
    specs = program.origin.job.plan.whole_specs()
    save_parameters(dirname, program.graph, dense, tables, specs)


def is_saved_model(directory: Path) -> bool:
    """True for a directory that `save`, or another save of a model, has written."""
    return (directory / MANIFEST).is_file()


def load(program: FluidProgram, names: Sequence[str], directory: Path) -> None:
    """Read parameters among `names` into the global scope; rows of distributed tables stay in the
    files, and are read when looked up.

    Raises `DataError` naming a parameter that the model lacks or has with another shape, and a file
    that is damaged.
    """
    model, scope, records = load_model(directory), global_scope(), program.graph.parameters
    shapes = model.shapes
    for name in names:
        if name not in records:
            continue
        record = records[name]
        needed = record.shape[1:] if record.sparse else record.shape
        if shapes.get(name) != needed:
            found = f"holds shape {shapes[name]}" if name in shapes else "does not have it"
            raise DataError(f"{name} has shape {needed}, but {directory} {found}.")
        if not record.sparse:
            scope[name] = np.array(model.dense[name])
        elif not record.distributed:
            ids = np.arange(record.shape[0], dtype=np.int64)
            scope[name] = model.pull_rows({name: ids})[name]
    if any(name in records and records[name].distributed for name in names):
        program.rows_from = model
