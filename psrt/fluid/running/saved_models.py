"""Models to predict with, in the form of `psrt.save_inference_model`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from psrt.fluid.framework import FluidProgram, default_main_program
from psrt.fluid.names import Variable
from psrt.fluid.running.scope import global_scope
from psrt.fluid.running.values import Fetch, names_of
from psrt.trainer.models import RowPages, inference


def save_inference_model(
    dirname: str | Path,
    feeded_var_names: Sequence[str] | str,
    target_vars: Sequence[Fetch] | Fetch,
    executor: Any,
    main_program: FluidProgram | None = None,
    model_filename: str | None = None,
    params_filename: str | None = None,
) -> list[str]:
    """Write the part of the program that computes `target_vars`, and its parameters.

    Rows of tables on pservers come from there. File names are psrt's own; `model_filename` and
    `params_filename` have no effect. Returns the names of `target_vars`. Raises `ProgramError` for
    a feed or target the program does not have.
    """
    program = default_main_program() if main_program is None else main_program
    feeds, fetches = names_of(feeded_var_names), names_of(target_vars)
    tables = _tables(program)
    inference.save_inference_model(dirname, feeds, fetches, program.graph, global_scope(), tables)
    return fetches


def load_inference_model(
    dirname: str | Path,
    executor: Any,
    model_filename: str | None = None,
    params_filename: str | None = None,
) -> tuple[FluidProgram, list[str], list[Variable]]:
    """Return the program, the names of its feeds, and the vars to fetch.

    Parameters go into the global scope; rows of tables are read from the files when looked up.
    Raises `DataError` for files that are missing or damaged.
    """
    predictor = inference.load_inference_model(dirname)
    program, scope = FluidProgram(predictor.program), global_scope()
    program.rows_from = predictor.rows
    for name, parameter in predictor.program.parameters.items():
        if not parameter.sparse:
            scope[name] = predictor.parameter(name)
    scope.reset_state(predictor.program)
    return program, predictor.feeds, [program.variable(name) for name in predictor.fetches]


def _tables(program: FluidProgram) -> dict[str, Callable[[], RowPages]]:
    """Readers of the rows of tables on pservers, after a pull of the newest values."""
    connection = program.origin.connection
    if connection is None:
        return {}
    connection.executor.pull()
    sparse = (p.name for p in program.graph.parameters.values() if p.sparse)
    return {name: partial(connection.executor.rows, name) for name in sparse}


__all__ = ["load_inference_model", "save_inference_model"]
