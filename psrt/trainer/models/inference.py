"""Models to predict with: saved as the part of a program that computes the fetches, and run.

A model that a trainer saved holds its whole program; loading it for prediction cuts it down to the
job's prediction, so labels need not be fed. A `Predictor` belongs to one thread. Parameters and
rows are mapped from the files of the directory and read when used: do not write to them meanwhile.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from psrt.core.errors import ConfigError, ProgramError
from psrt.core.specs import TableSpec
from psrt.core.tensors import Ragged
from psrt.core.types import F32, I64, Array
from psrt.data.formats import batch_of, fields_in
from psrt.data.slots import Batch, Slot, shaped, slot_of
from psrt.executor.memory import Scope
from psrt.executor.ports import ParamSource
from psrt.executor.program import Executor
from psrt.graph.program import Program, Var
from psrt.graph.prune import prune
from psrt.graph.verify import check_computed, verify
from psrt.partition.plan import build_plan
from psrt.trainer.inputs import Job
from psrt.trainer.models import export
from psrt.trainer.models.file_layout import format_of_slots, options_in
from psrt.trainer.models.model_dir import MANIFEST, Manifest, Prediction, unreadable
from psrt.trainer.models.saved_model import SavedModel, SavedTable, check_fits, load

PAGE_ROWS = 1 << 16
"""Rows of a page of a table that is whole in a scope."""


class Predictor:
    """A loaded model. `feeds` and `fetches` are var names, `program` computes these from those;
    `rows` answers for its tables."""

    def __init__(self, program: Program, model: SavedModel, prediction: Prediction) -> None:
        self.program = program
        self.feeds, self.fetches = list(prediction.feeds), list(prediction.fetches)
        self.prediction = prediction
        self._model = model
        scope = Scope()
        scope.reset_state(program)
        for name, record in program.parameters.items():
            if not record.sparse:
                scope[name] = model.dense[name]
        self.rows: ParamSource = model
        self._executor = Executor(program, scope, source=self.rows)

    def run(self, feed: Mapping[str, Array | Ragged]) -> list[Array | Ragged]:
        """The fetches of one batch; `feed` holds an array, or a `Ragged`, for each of `feeds`.

        Raises `DataError` naming a feed that is missing, unknown or of another shape or dtype.
        """
        return self._executor.run(feed, self.fetches, roles=("forward",))

    def features(self, columns: Mapping[str, Sequence[Any]]) -> Batch:
        """Return the feed of n raw rows: `columns` has n values for each column of the training
        files that the model is fed from, such as a DataFrame or a dict of lists.

        Texts are hashed, numbers scaled and missing values replaced as in training. Raises
        `DataError` naming row and column, `ConfigError` for files without columns.
        """
        format, vars = self.prediction.format, self.program.vars
        slots = [slot for slot in self.slots if slot.name in self.feeds]
        fields = fields_in(format_of_slots(self.prediction, slots), format)
        return shaped([vars[name] for name in self.feeds], batch_of(fields, columns))

    def parameter(self, name: str) -> Array:
        """Return a whole parameter; a sparse table of fixed height has one row per declared id.

        Raises `ProgramError` for a distributed table, which has a row for any int64.
        """
        record = self.program.parameters[name]
        if not record.sparse:
            return self._model.dense[name]
        if record.distributed:
            raise ProgramError(
                f"{name} is a distributed table, which has a row for any int64.",
                hint=f'Name the ids: pull_rows({{"{name}": ids}}).',
            )
        ids = np.arange(record.shape[0], dtype=np.int64)
        return self._model.pull_rows({name: ids})[name]

    def table(self, name: str) -> SavedTable:
        """Return a sparse table: the ids that have a row of their own, its spec, its rows."""
        return self._model.tables[name]

    def pull_rows(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        """Return rows (n, width) of any ids (n,) of each table."""
        return self._model.pull_rows(wanted)

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The fields of a line of the data files, as in training."""
        return self.prediction.slots


def load_inference_model(
    directory: str | Path, fetches: Sequence[str | Var] | None = None
) -> Predictor:
    """A predictor for a directory of `save_inference_model`, or of a trainer's `--save`.

    `fetches` asks for other vars of the saved program than those it was saved with. Raises
    `DataError` MODEL_UNREADABLE naming the file, `ProgramError` for a fetch that is not there.
    """
    directory = Path(directory)
    model = load(directory)
    program = _program_of(model, directory)
    prediction = model.manifest.prediction
    if fetches is not None:
        prediction = dataclasses.replace(prediction, fetches=_names(fetches), feeds=(), kind="")
    if not prediction.fetches:
        raise ConfigError(
            f"the model {directory} does not say which var is its prediction.",
            hint="Name the vars you want: --fetch, or fetches=[…]. Give psrt.Model a prediction.",
        )
    pruned = _part(program, prediction, directory, named_by_caller=fetches is not None)
    check_fits(pruned, model, directory)
    fed = prediction.feeds or tuple(var.name for var in pruned.data_vars())
    slots = prediction.slots or _slots_of(program)
    return Predictor(pruned, model, dataclasses.replace(prediction, feeds=fed, slots=slots))


def save_inference_model(
    directory: str | Path,
    feeds: Sequence[str | Var],
    fetches: Sequence[str | Var],
    program: Program,
    scope: Scope,
    tables: Mapping[str, Callable[[], export.RowPages]] | None = None,
) -> None:
    """Write the part of `program` that computes `fetches` from `feeds`, and its parameters.

    `scope` holds the parameters, saved as float32. The rows of distributed tables, which no scope
    holds, come from `tables`: per name a function that starts over pages of (ids, rows). An earlier
    model in `directory` is replaced at the end. Raises `ProgramError` for a var that does not
    exist, a missing feed, or a distributed table without rows.
    """
    directory = Path(directory)
    export.check_target(directory)
    named = Prediction(_names(feeds), _names(fetches), slots=_slots_of(program))
    pruned = prune(program.clone(for_test=True), named.fetches, named.feeds)
    verify(pruned)
    manifest = Manifest("", "psrt", pruned.to_text(), _frozen_tables(pruned), named)
    dense = {
        name: np.asarray(scope[name], np.float32)
        for name, record in pruned.parameters.items()
        if not record.sparse
    }
    directory.parent.mkdir(parents=True, exist_ok=True)
    export.save(directory, manifest, dense, _row_pages(pruned, scope, tables or {}))


def save_parameters(
    directory: str | Path,
    program: Program,
    dense: Mapping[str, Array],
    tables: Mapping[str, Callable[[], export.RowPages]],
    specs: Sequence[TableSpec] | None = None,
) -> None:
    """Write parameters of `program`: whole arrays, and rows of tables as pages of (ids, rows).

    `specs` are the whole parameters of a job, so that another job may begin with these values.
    The directory is complete or absent; an earlier model in it is replaced at the end. Raises
    `ConfigError` if it is something else, or cannot be written.
    """
    directory = Path(directory)
    export.check_target(directory)
    whole = {name: np.asarray(values, np.float32) for name, values in dense.items()}
    text = program.clone(for_test=True).to_text()
    declared = _frozen_tables(program) if specs is None else list(specs)
    manifest = Manifest("", "psrt", text, declared, Prediction())
    export.save(directory, manifest, whole, tables)


def manifest_of(job: Job) -> Manifest:
    """Return the manifest of a job's model; `export.save` adds the files."""
    return Manifest(
        job=job.config.name,
        software="psrt",
        program=job.program.to_text(),
        tables=job.whole_tables(),
        prediction=prediction_of(job),
    )


def prediction_of(job: Job) -> Prediction:
    """Return the prediction of a job's model: feeds, fetches and the kind of its values."""
    model = job.model
    data = job.config.data
    options = options_in(data)
    if model.prediction is None:
        return Prediction(slots=job.slots, format=data.format, options=options)
    fetches = (model.prediction.name,)
    return Prediction(
        feeds=tuple(var.name for var in prune(job.program, fetches).data_vars()),
        fetches=fetches,
        kind=model.prediction_is,
        label=model.label.name if model.label is not None else "",
        slots=job.slots,
        format=data.format,
        options=options,
        group=model.group.name if model.group is not None else "",
        weight=model.weight.name if model.weight is not None else "",
    )


def _names(vars: Sequence[str | Var]) -> tuple[str, ...]:
    return tuple(var if isinstance(var, str) else var.name for var in vars)


def _slots_of(program: Program) -> tuple[Slot, ...]:
    return tuple(slot_of(var) for var in program.data_vars())


def _program_of(model: SavedModel, directory: Path) -> Program:
    """The saved program, for testing."""
    try:
        program = Program.from_text(model.manifest.program)
        verify(program)
    except ProgramError as error:
        raise unreadable(directory / MANIFEST, f"has no legal program: {error.message}") from error
    return program.clone(for_test=True)


def _part(
    program: Program, prediction: Prediction, directory: Path, named_by_caller: bool
) -> Program:
    try:
        pruned = prune(program, prediction.fetches, prediction.feeds or None)
        check_computed(pruned, prediction.fetches)
        return pruned
    except ProgramError as error:
        if named_by_caller:
            raise
        raise unreadable(directory / MANIFEST, f"contradicts itself: {error.message}") from error


def _frozen_tables(program: Program) -> list[TableSpec]:
    """Specs of the tables of a program that trains nothing."""
    frozen = [dataclasses.replace(p, trainable=False) for p in program.parameters.values()]
    return build_plan(frozen, ["all"], slice_var_up=False).specs_for("all")


def _row_pages(
    program: Program, scope: Scope, given: Mapping[str, Callable[[], export.RowPages]]
) -> dict[str, Callable[[], export.RowPages]]:
    pages: dict[str, Callable[[], export.RowPages]] = {}
    for name, record in program.parameters.items():
        if name in given:
            pages[name] = given[name]
        elif record.distributed:
            raise ProgramError(
                f"The rows of the distributed table {name} are in no scope; nothing was saved.",
                hint="Save with `psrt trainer --save`, or give the rows as tables={name: pages}.",
            )
        elif record.sparse:
            pages[name] = partial(_pages_of, scope[name])
    return pages


def _pages_of(table: Array) -> Iterator[tuple[I64, F32]]:
    for start in range(0, len(table), PAGE_ROWS):
        rows = np.asarray(table[start : start + PAGE_ROWS], np.float32)
        yield np.arange(start, start + len(rows), dtype=np.int64), rows
