"""Rows of tables for one step: the ids that a batch looks up, and their rows.

The rows of a sparse table are fetched before the step, each id once. A trainer binds a `RowBatch`;
lookup ops read `BoundRows`, which is a row batch or a whole array of the scope.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from psrt.core.errors import ErrorCode, ProgramError
from psrt.core.tensors import Ragged
from psrt.core.types import I32, I64, Array
from psrt.executor.memory.cells import Cell, CellMemory
from psrt.executor.memory.scope import check_shape, check_writeable
from psrt.graph.program import Parameter, Program
from psrt.kernels.tables import as_rows, unique


@dataclass(frozen=True)
class RowBatch:
    """The rows of one sparse table for one batch.

    `ids` (n,) int64 are distinct, `rows` (n, width) are their rows; that of a padding id is zeros.
    `index[var]` int32 holds the row number of each id of that data var, flat.
    """

    ids: I64
    rows: Array
    index: Mapping[str, I32]


def lookups_by_table(program: Program) -> dict[str, tuple[str, ...]]:
    """The data vars that look up each sparse table, in program order."""
    found: dict[str, dict[str, None]] = {}
    for op in program.ops:
        if op.role == "forward" and "table" in op.inputs:
            (table,) = op.inputs["table"]
            if program.parameters[table].sparse:
                found.setdefault(table, {}).update(dict.fromkeys(op.inputs["ids"]))
    return {table: tuple(names) for table, names in found.items()}


def distinct_ids(
    feed: Mapping[str, Array | Ragged], names: Sequence[str]
) -> tuple[I64, dict[str, I32]]:
    """The distinct ids of data vars `names`, and the `RowBatch.index` for them."""
    parts = []
    for name in names:
        fed = feed[name]
        parts.append((fed.values if isinstance(fed, Ragged) else fed).reshape(-1))
    counts = [len(part) for part in parts]
    ids, positions = unique(join(parts, np.empty(sum(counts), np.int64)))
    return ids, Joined(positions, dict(zip(names, counts, strict=True))).by_var()


def join(parts: Sequence[Array], out: Array) -> Array:
    """Concatenate the flat `parts` of n elements in total into `out` (n,), and return it.

    `numpy.concatenate` releases and takes the interpreter's lock for each of its arrays: with the
    ids of 26 slots a thread was put to sleep 6 times a step while another one computed.
    """
    if all(part.dtype is out.dtype and part.flags.c_contiguous for part in parts):
        target, start = out.data, 0
        for part in parts:
            stop = start + len(part)
            target[start:stop] = part.data
            start = stop
    else:
        np.concatenate(parts, out=out, casting="unsafe")
    return out


@dataclass(frozen=True)
class Joined:
    """One number for each id of several data vars: `flat` (n,), concatenated var by var."""

    flat: I32
    counts: Mapping[str, int]

    def by_var(self) -> dict[str, I32]:
        """The numbers of each var."""
        index, start = {}, 0
        for name, count in self.counts.items():
            index[name] = self.flat[start : start + count]
            start += count
        return index


class SharedIds:
    """The concatenated ids of several cells, joined once a step by the first reading thread."""

    def __init__(self, slots: Sequence[Cell]) -> None:
        self._slots = slots
        self._names = [ids.name for ids in slots]
        self._memory = CellMemory()
        self._lock = threading.Lock()
        self._joined: I64 | None = None

    def renew(self) -> None:
        """Discard the joined ids, since the cells hold other ids."""
        self._joined = None

    def are_of(self, slots: Sequence[Cell]) -> bool:
        """True if these are exactly the joined vars."""
        return [ids.name for ids in slots] == self._names

    def counts(self) -> dict[str, int]:
        """The number of ids of each var."""
        return {name: ids.value.size for name, ids in zip(self._names, self._slots, strict=True)}

    def ids(self) -> I64:
        """All ids, (n,)."""
        with self._lock:
            if self._joined is None:
                parts = [ids.value.reshape(-1) for ids in self._slots]
                memory = self._memory.array((sum(map(len, parts)),), np.dtype(np.int64))
                self._joined = join(parts, memory)
            return self._joined


class BoundRows:
    """One table in one step, for lookup ops.

    `values` (n, width) holds its rows, `index` the row of each id by data var. `ids` are the ids of
    the rows, None for a whole table, in which id i is row i. `padding_row` is that of the padding
    id, -1 for none. `joined_ids` are all ids looked up in a whole table, None if not joined. The
    gradient has the rows of `values`; after `set_gradient_rows` it has one for each of `ids`.
    """

    def __init__(self, parameter: Parameter) -> None:
        self.parameter = parameter
        self.values: Array = np.empty((0, parameter.shape[1]))
        self.ids: I64 | None = None
        self.index: dict[str, I32] = {}
        self.is_whole = False
        self.padding_row = -1
        self.joined_ids: SharedIds | None = None
        self._table_rows: I32 | None = None
        self._gradient_rows: Joined | None = None
        self._gradient_row_of: dict[str, I32] = {}

    def bind(self, batch: RowBatch, dtype: Any) -> None:
        """Use fetched rows; raises `ProgramError` if they have a wrong shape."""
        if batch.rows.shape != (len(batch.ids), self.parameter.shape[1]):
            raise ProgramError(
                f"Rows of shape {batch.rows.shape} are bound for {len(batch.ids)} ids of table "
                f"{self.parameter.name}, whose rows are {self.parameter.shape[1]} wide.",
                code=ErrorCode.SHAPE_MISMATCH,
                hint="Bind a row of that width for each of the ids.",
            )
        self.values = np.ascontiguousarray(batch.rows, dtype)
        self.ids, self.index = batch.ids, dict(batch.index)
        self.is_whole, self.joined_ids = False, None
        self._gradient_rows, self._table_rows = None, None
        self.padding_row = -1
        if self.parameter.padding_id is not None:
            (found,) = np.nonzero(batch.ids == self.parameter.padding_id)
            self.padding_row = int(found[0]) if len(found) else -1

    def bind_whole(self, table: Array) -> None:
        """Use the whole table and set its padding row to zeros."""
        if table is not self.values:
            self._check_whole(table)
        self.values, self.ids = table, None
        self.is_whole, self.joined_ids = True, None
        self._gradient_rows, self._table_rows = None, None
        self.index.clear()
        if self.parameter.padding_id is not None:
            self.padding_row = self.parameter.padding_id
            table[self.padding_row] = 0

    def _check_whole(self, table: Array) -> None:
        """Raise `ProgramError` unless the array has the declared height, a bound of its ids."""
        check_shape(self.parameter.name, table, self.parameter.shape)
        if self.parameter.padding_id is not None:
            check_writeable(self.parameter.name, table)

    def set_gradient_rows(self, ids: I64, table_rows: I32, gradient_rows: Joined | None) -> None:
        """Give the gradient of a whole table one row for each of the distinct `ids`.

        `table_rows` are the ids as row numbers of the table, valid if their lookups succeeded.
        `gradient_rows` holds the gradient's row for each id of the data vars; None for a replica
        without examples.
        """
        self.ids, self._table_rows, self._gradient_rows = ids, table_rows, gradient_rows
        self._gradient_row_of.clear()

    @property
    def table_rows(self) -> I32:
        """The ids of the gradient as rows of a whole table."""
        if self._table_rows is None:
            assert self.ids is not None, "rows of a sparse table are bound by their ids"
            return rows_of_whole(self.parameter, self.ids)
        return self._table_rows

    @property
    def has_own_gradient_rows(self) -> bool:
        """True if the gradient has other rows than the table."""
        return self.is_whole and self.ids is not None

    @property
    def gradient_shape(self) -> tuple[int, int]:
        height, width = self.values.shape
        return (height if self.ids is None else len(self.ids), width)

    def zero_padding_(self, gradient: Array) -> None:
        """Set the gradient of the padding row to zero."""
        if self.padding_row >= 0:
            gradient[self.padding_row] = 0

    def index_of(self, ids: Cell) -> I32:
        """The table row of each id of a data var, (n,)."""
        known = self.index.get(ids.name)
        if known is not None:
            return known
        if not self.is_whole:
            raise ProgramError(
                f"The rows bound for table {self.parameter.name} have no index for {ids.name}.",
                hint="Make the RowBatch from all data vars of lookups_by_table.",
            )
        return self.index.setdefault(ids.name, rows_of_whole(self.parameter, ids.value))

    def gradient_row_of(self, ids: Cell) -> I32:
        """The gradient row to which each id of a data var adds, (n,)."""
        if self._gradient_rows is None:
            return self.index_of(ids)
        if not self._gradient_row_of:
            self._gradient_row_of = self._gradient_rows.by_var()
        return self._gradient_row_of[ids.name]

    def gradient_rows_of(self, slots: Sequence[Cell]) -> I32 | None:
        """Concatenated gradient rows of `slots`; None unless these are all lookups of the table."""
        if self._gradient_rows is None or [ids.name for ids in slots] != list(
            self._gradient_rows.counts
        ):
            return None
        return self._gradient_rows.flat


def rows_of_whole(parameter: Parameter, ids: Array) -> I32:
    """Ids as row numbers of a whole table; raises `ProgramError` for an id outside it."""
    flat = np.ascontiguousarray(ids, np.int64).reshape(-1)
    rows: I32 = np.empty(len(flat), np.int32)
    if not as_rows(flat, parameter.shape[0], rows):
        check_rows(parameter, ids)
    return rows


def check_rows(parameter: Parameter, ids: Array) -> None:
    """Raise `ProgramError` unless all ids are rows of a table that is not distributed."""
    flat = ids.reshape(-1)
    height = parameter.shape[0]
    if len(flat) and (flat.min() < 0 or flat.max() >= height):
        bad = flat[(flat < 0) | (flat >= height)][0]
        raise ProgramError(
            f"Id {bad} is not a row of table {parameter.name}, which has rows 0 to {height - 1}.",
            hint="Enlarge the table, or make it distributed: then any int64 is an id.",
        )
