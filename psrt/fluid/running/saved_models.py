"""Models to predict with, in the form of `psrt.save_inference_model` and in PaddlePaddle's own."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from psrt.core.errors import DataError
from psrt.core.types import Array
from psrt.fluid.formats import ReadProgram
from psrt.fluid.framework import FluidProgram
from psrt.fluid.names import Variable
from psrt.fluid.running import paddle_files
from psrt.fluid.running.saved_vars import AnyProgram, program_of
from psrt.fluid.running.scope import global_scope
from psrt.fluid.running.values import Fetch, names_of
from psrt.fluid.running.whole_programs import is_whole, load_whole, save_whole
from psrt.fluid.running.whole_tables import whole_graph
from psrt.graph.derived import is_lengths_name, lengths_name
from psrt.trainer.models import MANIFEST, RowPages, inference

MODEL_FILE = "__model__"
MODEL_FOLDERS = ("dense", "sparse")


_AUC_COUNTS = (  # Fluid's words
    "please ensure that you have set the auc states to zeros before saving inference model"
)


class NoModelError(DataError, ValueError):
    """A model was to be loaded from nowhere."""


def save_inference_model(
    dirname: str | Path,
    feeded_var_names: Sequence[str] | str,
    target_vars: Sequence[Fetch] | Fetch,
    executor: Any,
    main_program: AnyProgram = None,
    model_filename: str | None = None,
    params_filename: str | None = None,
    export_for_deployment: bool = True,
    program_only: bool = False,
) -> list[str]:
    """Write the part of the program that computes `target_vars`, and its parameters.

    Rows of tables on pservers come from there. Files are those of a saved model of psrt, and those
    of PaddlePaddle: `__model__`, or `model_filename`, and the parameters, in a file each or in
    `params_filename`. Where Fluid lacks an op of the program, or a table is distributed,
    `__model__` holds the program's text. Without targets that is the whole program, to train on.
    Other files in `dirname` stay. The other arguments have no effect. Returns the names of
    `target_vars`. Warns of a program with an AUC, whose counts are saved as they are. Raises
    `ProgramError` for a feed or target the program does not have.
    """
    program = program_of(main_program)
    if any(op.type in ("auc", "sliding_auc") for op in program.graph.ops):
        warnings.warn(_AUC_COUNTS, stacklevel=2)
    feeds, fetches = names_of(feeded_var_names), names_of(target_vars, program.current)
    feeds += [lengths for name in feeds if (lengths := lengths_name(name)) in program.graph.vars]
    tables, directory = _tables(program), Path(dirname)
    if not fetches:
        file = directory / (model_filename or MODEL_FILE)
        save_whole(file, program, executor, params_filename)
        return []
    with beside_other_files(directory) as place:
        graph = whole_graph(program, global_scope())
        inference.save_inference_model(place, feeds, fetches, graph, global_scope(), tables)
        _write_paddles(place / (model_filename or MODEL_FILE), params_filename)
    return fetches


def _write_paddles(path: Path, params_filename: str | None) -> None:
    """Write PaddlePaddle's files beside those of the model in the directory of `path`."""
    model = inference.load_inference_model(path.parent)
    records = model.program.parameters
    if not any(record.distributed for record in records.values()):
        arrays = {name: model.parameter(name) for name in records}
        names = model.feeds, model.fetches
        if paddle_files.write_model(path, model.program, *names, arrays, params_filename):
            return
    path.write_text(model.program.to_text())


@contextmanager
def beside_other_files(directory: Path) -> Iterator[Path]:
    """Yield a place to save a model in; its files then replace those of a model in `directory`.

    It is `directory` itself where that holds nothing else, so that a save is complete or absent,
    and where this process does not run in it.
    """
    owned = (MANIFEST, MODEL_FILE, *MODEL_FOLDERS)
    others = directory.is_dir() and any(e.name not in owned for e in directory.iterdir())
    if not (others or Path.cwd().is_relative_to(directory.resolve())):
        yield directory
        return
    place = directory / f".saving-{os.getpid()}"
    try:
        yield place
        (directory / MANIFEST).unlink(missing_ok=True)  # from here on the earlier model is gone
        for entry in sorted(place.iterdir(), key=lambda entry: entry.name == MANIFEST):
            shutil.rmtree(directory / entry.name, ignore_errors=True)
            entry.rename(directory / entry.name)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def load_inference_model(
    dirname: str | Path | None,
    executor: Any,
    model_filename: str | bytes | None = None,
    params_filename: str | bytes | None = None,
) -> tuple[FluidProgram, list[str], list[Variable]]:
    """Return the program, the names of its feeds, and the vars to fetch.

    Parameters go into the global scope; rows of tables are read from the files when looked up. A
    program that was saved whole has no feeds and vars to fetch of its own.
    Models that PaddlePaddle saved are read, too, from `dirname`, or from files that begin with that
    path (`.pdmodel`, `.pdiparams`). Without a `dirname` the other arguments are PaddlePaddle's
    program and parameters themselves, in bytes. Raises `DataError` for files that are missing or
    damaged, and for an op that psrt does not read.
    """
    if dirname is None:
        return _in_scope(*_in_memory(model_filename, params_filename), "the bytes in memory")
    assert not isinstance(model_filename, bytes)
    assert not isinstance(params_filename, bytes)
    path = paddle_files.model_file(Path(dirname), model_filename, MODEL_FILE)
    if path is not None and not (path.parent / MANIFEST).is_file():
        if is_whole(path):
            return load_whole(path, executor, params_filename), [], []
        return _in_scope(*paddle_files.read_model(path, params_filename), str(path))
    predictor = inference.load_inference_model(dirname)
    program, scope = FluidProgram(predictor.program), global_scope()
    program.rows_from = predictor.rows
    for name, parameter in predictor.program.parameters.items():
        if not parameter.sparse:
            scope[name] = predictor.parameter(name)
    scope.reset_state(predictor.program)
    feeds = [name for name in predictor.feeds if not is_lengths_name(name)]
    return program, feeds, [program.variable(name) for name in predictor.fetches]


def _in_memory(program: object, parameters: object) -> tuple[ReadProgram, dict[str, Array]]:
    if not isinstance(program, bytes) or not isinstance(parameters, bytes):
        raise NoModelError(
            "load_inference_model was given no directory, and no bytes of a program and parameters."
        )
    return paddle_files.model_of_bytes(program, parameters)


def _in_scope(
    made: ReadProgram, arrays: dict[str, Array], where: str
) -> tuple[FluidProgram, list[str], list[Variable]]:
    """Put the parameters of a model that PaddlePaddle saved into the global scope."""
    scope, records = global_scope(), made.program.graph.parameters
    for name, record in records.items():
        if name not in arrays or arrays[name].shape != record.shape:
            raise DataError(f"{name} of shape {record.shape} is missing in {where}.")
        scope[name] = arrays[name].astype(np.float32)
    return made.program, made.feeds, made.fetches


def _tables(program: FluidProgram) -> dict[str, Callable[[], RowPages]]:
    """Readers of the rows of tables on pservers, after a pull of the newest values."""
    connection = program.origin.connection
    if connection is None:
        return {}
    connection.executor.pull()
    sparse = (p.name for p in program.graph.parameters.values() if p.sparse)
    return {name: partial(connection.executor.rows, name) for name in sparse}


__all__ = ["load_inference_model", "save_inference_model"]
