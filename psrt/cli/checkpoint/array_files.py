"""Parameters of a cut as NumPy and Parquet files, written step by step in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import numpy as np

from psrt.core.extras import required
from psrt.core.types import Array, Shape
from psrt.pserver.saved import CutDense, CutTable, SavedRows

Advance = Callable[[int], None]

_PIECE_ELEMENTS = 4 << 20
_HEADER_BYTES = 128  # of a .npy file with up to eight dimensions of usual size


def write_dense(root: Path, name: str, dense: CutDense, advance: Advance) -> list[str]:
    """Write values and optimizer state as `dense/NAME.npy` and `dense/NAME.state.npy`.

    The state has the shape (vectors, *shape of the parameter). Returns the names of the files.
    """
    stem, shape, size = f"dense/{quote(name, safe='')}", dense.spec.shape, dense.spec.size
    with _npy(root / f"{stem}.npy", np.dtype(np.float32)) as (out, end_at):
        for first in range(0, size, _PIECE_ELEMENTS):
            piece = dense.values(first, min(first + _PIECE_ELEMENTS, size))
            out.write(piece.data)
            advance(piece.nbytes)
        end_at(shape)
    if not dense.vectors:
        return [f"{stem}.npy"]
    with _npy(root / f"{stem}.state.npy", np.dtype(np.float32)) as (out, end_at):
        for vector in range(dense.vectors):
            for first in range(0, size, _PIECE_ELEMENTS):
                piece = dense.vector(vector, first, min(first + _PIECE_ELEMENTS, size))
                out.write(piece.data)
                advance(piece.nbytes)
        end_at((dense.vectors, *shape))
    return [f"{stem}.npy", f"{stem}.state.npy"]


def write_numpy_table(
    root: Path, name: str, table: CutTable, advance: Advance
) -> tuple[list[str], int]:
    """Write a sparse table as `sparse/NAME.COLUMN.npy`, a file for each column.

    Returns the names of the files and the number of rows.
    """
    stem, rows = f"sparse/{quote(name, safe='')}", dict[str, int]()
    with ExitStack() as files:
        opened: dict[str, tuple[IO[bytes], Callable[[Shape], None], Shape]] = {}
        for group in _groups(table, advance):
            for column, values in columns_of(table, group).items():
                if column not in opened:
                    path = root / f"{stem}.{column}.npy"
                    file = files.enter_context(_npy(path, values.dtype))
                    opened[column] = *file, values.shape[1:]
                rows[column] = rows.get(column, 0) + len(values)
                opened[column][0].write(np.ascontiguousarray(values).data)
        for column, (_, end_at, rest) in opened.items():
            end_at((rows[column], *rest))
    return [f"{stem}.{column}.npy" for column in opened], rows.get("ids", 0)


def write_parquet_table(
    root: Path, name: str, table: CutTable, advance: Advance
) -> tuple[list[str], int]:
    """Write a sparse table as `sparse/NAME.parquet`, a row group for each step.

    Returns the name of the file and the number of rows. Raises `ConfigError` without pyarrow.
    """
    arrow = required("pyarrow", "parquet", "exporting Parquet files")
    parquet = required("pyarrow.parquet", "parquet", "exporting Parquet files")
    file, rows, writer = f"sparse/{quote(name, safe='')}.parquet", 0, None
    try:
        for group in _groups(table, advance):
            columns = {
                column: _arrow(arrow, values)
                for column, values in columns_of(table, group, whole=True).items()
            }
            made = arrow.table(columns)
            writer = writer or parquet.ParquetWriter(str(root / file), made.schema)
            writer.write_table(made)
            rows += len(group.rows.ids)
    finally:
        if writer is not None:
            writer.close()
    return [file], rows


def columns_of(table: CutTable, group: SavedRows, whole: bool = False) -> dict[str, Array]:
    """Columns of rows: ids (`id` if `whole`), weights, state, counters that the table stores.

    A table that grows has, as `long_ids` and `long_state`, the ids of grown rows and the optimizer
    state of their long part; if `whole`, `grown` (n,) bool and `long_state` of all rows in their
    place, zeros where a row has not grown.
    """
    rows, long = group.rows, group.long
    columns: dict[str, Array] = {
        "id" if whole else "ids": rows.ids,
        "weights": group.weights(table.spec.width),
    }
    if rows.state.shape[1]:
        columns["state"] = rows.state
    columns |= rows.counters
    if long is None:
        return columns
    if not whole:
        state = {"long_state": long.state} if long.state.shape[1] else {}
        return {**columns, "long_ids": long.ids, **state}
    grown = np.zeros(len(rows.ids), bool)
    grown[group.grown()] = True
    columns["grown"] = grown
    if long.state.shape[1]:
        columns["long_state"] = np.zeros((len(rows.ids), long.state.shape[1]), np.float32)
        columns["long_state"][group.grown()] = long.state
    return columns


def _groups(table: CutTable, advance: Advance) -> Iterator[SavedRows]:
    """All rows step by step; a table without rows has one step, so that it has files."""
    is_empty = True
    for group in table.groups(0, table.spec.virtual_shards):
        is_empty = False
        yield group
        advance(group.size_bytes)
    if is_empty:
        with table.walk(0, table.spec.virtual_shards) as walk:
            yield walk.rows(0, 0)


@contextmanager
def _npy(path: Path, dtype: np.dtype[Any]) -> Iterator[tuple[IO[bytes], Callable[[Shape], None]]]:
    """A file for the elements of an array, and a function that ends it with the array's shape.

    NumPy leaves room in the header for a longer first axis, so that it can be written last.
    """
    with path.open("wb") as out:

        def put_header(shape: Shape) -> None:
            out.seek(0)
            descr = np.lib.format.dtype_to_descr(dtype)
            facts = {"descr": descr, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(out, facts)
            assert out.tell() == _HEADER_BYTES, shape
            out.flush()
            os.fsync(out.fileno())

        out.write(bytes(_HEADER_BYTES))
        yield out, put_header


def _arrow(arrow: Any, values: Array) -> Any:
    """An array (n,) or (n, width) as a column; that of width numbers is a list of fixed size."""
    if values.ndim == 1:
        return arrow.array(values)
    flat = arrow.array(np.ascontiguousarray(values).reshape(-1))
    return arrow.FixedSizeListArray.from_arrays(flat, values.shape[1])
