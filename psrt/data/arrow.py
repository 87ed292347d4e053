"""Parquet and Arrow IPC files through pyarrow, a row group or record batch at a time.

Columns feed slots as in `psrt.data.fields`: numbers as ids or floats, strings as hashes (those of
delimited text), lists as the values of a ragged or dense slot. `separator` is for text files only.
A null is a missing value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from psrt.core.errors import ConfigError, DataError, PsrtError
from psrt.data.arrow_columns import ColumnReader
from psrt.data.extras import required
from psrt.data.fields import fields_of
from psrt.data.pieces import window
from psrt.data.remote import is_url, unreadable
from psrt.data.slots import Batch, Slot, batch_rows
from psrt.data.sources import open_stored

_FILE_MAGIC = b"ARROW1"


class _TableFormat:
    """What the two formats share: `pyarrow.RecordBatch` to examples."""

    def __init__(self, slots: Sequence[Slot], columns: Mapping[str, Any] | None = None) -> None:
        self.slots = tuple(slots)
        self.fields = fields_of(slots, columns)
        for field in self.fields:
            if field.separator:
                raise ConfigError(f"data.columns.{field.slot.name}: separator is for text files.")
        required("pyarrow", "parquet", "reading Parquet and Arrow files")

    def read(
        self, path: Path | str, batch_size: int, row_group: int = 0
    ) -> Iterator[tuple[int, Batch]]:
        """The examples from a row group on, `batch_size` or fewer at a time, and their group."""
        pyarrow = required("pyarrow", "parquet", f"reading {path}")
        with open_stored(path) as file:
            try:
                for group, (first_row, table) in enumerate(self._tables(file, row_group)):
                    reader = ColumnReader(str(path), first_row)
                    piece = {f.slot.name: reader.slot(table, f) for f in self.fields}
                    for at in range(0, batch_rows(piece), batch_size):
                        stop = min(at + batch_size, batch_rows(piece))
                        yield row_group + group, window(piece, at, stop)
            except (pyarrow.ArrowException, OSError) as error:
                raise DataError(
                    f"{path}: not a whole {self._kind} file ({error}). Reading stopped.",
                    hint="Check the format of the job, or copy or generate the file again.",
                ) from error
            except Exception as error:
                # Each storage has exceptions of its own.
                if isinstance(error, PsrtError) or not is_url(path):
                    raise
                raise unreadable(path, error) from error

    _kind = ""

    def _tables(self, file: IO[bytes], first: int) -> Iterator[tuple[int, Any]]:
        """The tables from number `first` on, each with the rows of the file before it."""
        raise NotImplementedError


class ParquetFormat(_TableFormat):
    """The format `parquet`; only the columns in use are read, unless they go by number."""

    _kind = "Parquet"

    def _tables(self, file: IO[bytes], first: int) -> Iterator[tuple[int, Any]]:
        parquet = required("pyarrow.parquet", "parquet", "reading Parquet files")
        table = parquet.ParquetFile(file)
        wanted = {column for field in self.fields for column in field.columns}
        # Columns by number, and messages on missing ones, need all of them.
        columns = list(wanted) if wanted <= set(table.schema_arrow.names) else None
        sizes = [table.metadata.row_group(group).num_rows for group in range(table.num_row_groups)]
        for group in range(first, len(sizes)):
            rows = table.read_row_group(group, columns=columns, use_threads=False)
            yield sum(sizes[:group]), rows


class ArrowFormat(_TableFormat):
    """The format `arrow`: IPC files and streams."""

    _kind = "Arrow IPC"

    def _tables(self, file: IO[bytes], first: int) -> Iterator[tuple[int, Any]]:
        """Only reading a record batch tells how many rows it has."""
        rows = 0
        for group, table in enumerate(self._all_tables(file)):
            if group >= first:
                yield rows, table
            rows += table.num_rows

    def _all_tables(self, file: IO[bytes]) -> Iterator[Any]:
        ipc = required("pyarrow.ipc", "parquet", "reading Arrow files")
        is_file = file.read(len(_FILE_MAGIC)) == _FILE_MAGIC
        file.seek(0)
        if not is_file:
            yield from ipc.open_stream(file)
            return
        reader = ipc.open_file(file)
        for group in range(reader.num_record_batches):
            yield reader.get_batch(group)
