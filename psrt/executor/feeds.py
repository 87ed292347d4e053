"""One batch into the cells of the data vars, checked where it enters."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

import numpy as np

from psrt.core.errors import DataError, ErrorCode
from psrt.core.tensors import Ragged
from psrt.core.types import Array
from psrt.executor.cells import Cell
from psrt.graph.program import Var


def load(
    feed: Mapping[str, Array | Ragged], vars: Mapping[str, Var], cells: Mapping[str, Cell]
) -> None:
    """Set the cells of all data `vars`; raises `DataError` naming the one that does not fit."""
    for name in feed:
        if name not in vars:
            near = difflib.get_close_matches(name, vars, 1)
            raise DataError(
                f"The batch feeds {name}, which the program does not declare.",
                hint=f"Did you mean {near[0]}?" if near else "Declare it with layers.data.",
            )
    sizes: dict[int, str] = {}
    for name, var in vars.items():
        if name not in feed:
            raise DataError(f"The batch does not feed {name}, declared as {var.type}.")
        sizes.setdefault(_load_one(feed[name], var, cells[name]), name)
    if len(sizes) > 1:
        (first, name), (second, other) = list(sizes.items())[:2]
        raise DataError(f"The batch feeds {first} examples as {name}, but {second} as {other}.")


def _load_one(fed: Array | Ragged, var: Var, cell: Cell) -> int:
    """Returns the number of examples."""
    if var.ragged != isinstance(fed, Ragged):
        kind = "a ragged" if var.ragged else "an ordinary"
        raise DataError(
            f"{var.name} is {kind} var of type {var.type}, but got {type(fed).__name__}."
        )
    values = np.asarray(fed.values if isinstance(fed, Ragged) else fed)
    if values.shape[1:] != var.shape[1:] or values.ndim != len(var.shape):
        raise DataError(
            f"{var.name} is declared with shape {var.shape}, but fed with shape {values.shape}.",
            code=ErrorCode.SHAPE_MISMATCH,
        )
    if values.dtype.kind not in ("f" if cell.dtype.kind == "f" else "iu"):
        raise DataError(f"{var.name} holds {var.dtype}, but is fed with {values.dtype}.")
    cell.share(np.ascontiguousarray(values, cell.dtype))
    if isinstance(fed, Ragged):
        cell.offsets = fed.offsets
        return fed.batch_size
    return len(values)
