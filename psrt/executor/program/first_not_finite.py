"""The place where the first number of a step came to be that is not finite."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from psrt.core.errors import ErrorCode, PsrtError
from psrt.core.tensors import Ragged
from psrt.core.types import Array
from psrt.executor.memory import RowBatch, Scope
from psrt.executor.program.finite_checks import FiniteChecks
from psrt.executor.program.sequential import Executor
from psrt.graph.program import Program


def first_not_finite(
    program: Program, scope: Scope, feed: Mapping[str, Array | Ragged], rows: Mapping[str, RowBatch]
) -> str:
    """A sentence about the first such number, by a run of the same step that checks every op.

    The inputs come first: data, parameters, and rows with their ids.
    """
    found = _in_data(feed) or _in_parameters(program, scope) or _in_rows(rows)
    return found or _in_ops(program, scope, feed, rows)


def _in_data(feed: Mapping[str, Array | Ragged]) -> str:
    for name, value in feed.items():
        values = value.values if isinstance(value, Ragged) else value
        if (at := _first(values)) is not None:
            return f"The data of {name} have {values.reshape(-1)[at]} at element {at} of the batch."
    return ""


def _in_parameters(program: Program, scope: Scope) -> str:
    for parameter in program.parameters.values():
        if parameter.name in scope and (at := _first(scope[parameter.name])) is not None:
            bad = scope[parameter.name].reshape(-1)[at]
            place = f"row {at // parameter.shape[-1]}" if parameter.sparse else f"element {at}"
            return f"Parameter {parameter.name} is {bad} in {place}: an earlier step made it so."
    return ""


def _in_rows(rows: Mapping[str, RowBatch]) -> str:
    for table, batch in rows.items():
        if (at := _first(batch.rows)) is not None:
            width = batch.rows.shape[1]
            bad, id = batch.rows.reshape(-1)[at], batch.ids[at // width]
            return f"Table {table} has {bad} in the row of id {id}: an earlier step made it so."
    return ""


def _in_ops(
    program: Program, scope: Scope, feed: Mapping[str, Array | Ragged], rows: Mapping[str, RowBatch]
) -> str:
    written = tuple(name for op in program.ops if op.role != "optimize" for name in op.writes())
    try:
        Executor(program, scope, checks=FiniteChecks(written)).run(feed, (), rows)
    except PsrtError as error:
        if error.code is ErrorCode.NOT_FINITE:
            return f"{error.message} All that this op read is finite."
        raise
    return "A second run of the same step was finite."


def _first(values: Array) -> int | None:
    """The place (flat) of the first number that is not finite, None = there is none."""
    if values.dtype.kind != "f":
        return None
    bad = ~np.isfinite(values.reshape(-1))
    return int(bad.argmax()) if bad.any() else None
