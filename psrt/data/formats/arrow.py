"""Parquet and Arrow IPC files through pyarrow, a row group or record batch at a time.

Columns feed slots as `psrt.data.formats.fields` describes: numbers as ids or floats, strings as
hashes (equal to those of delimited text), lists as the values of a ragged or dense slot.
`separator` is for text files only. A null is a missing value.
"""

from __future__ import annotations

import io
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from psrt.core.errors import ConfigError, DataError, PsrtError
from psrt.core.extras import required
from psrt.core.urls import is_url
from psrt.data.formats.arrow_columns import ColumnReader
from psrt.data.formats.arrow_ends import behind_stream, check_file
from psrt.data.formats.fields import Field, fields_of
from psrt.data.formats.rebatching import window
from psrt.data.slots import Batch, Slot, batch_rows
from psrt.data.sources import Stamp, open_raw, unreadable

_FILE_MAGIC = b"ARROW1"
_OF_DAMAGE = (OSError, UnicodeDecodeError, OverflowError, MemoryError)
"""Exceptions other than its own that pyarrow raises on damaged files."""


@dataclass(frozen=True)
class ArrowRows:
    """One row group: a table of pyarrow, preceded by `first_row` rows of the file."""

    path: Path | str
    kind: str
    fields: Sequence[Field]
    table: Any
    first_row: int

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    def read(self, start: int, stop: int) -> Batch:
        """Return the examples of some rows; raises `DataError` naming file, row and column."""
        reader = ColumnReader(str(self.path), self.first_row + start)
        with _naming(self.path, self.kind):
            table = self.table.slice(start, stop - start)
            return {field.slot.name: reader.slot(table, field) for field in self.fields}


@contextmanager
def _naming(path: Path | str, kind: str) -> Iterator[None]:
    """Turn errors of pyarrow, or of a storage, into a `DataError` that names the file."""
    pyarrow = required("pyarrow", "parquet", f"reading {path}")
    try:
        yield
    except (pyarrow.ArrowException, *_OF_DAMAGE) as error:
        why = str(error) or type(error).__name__
        raise DataError(
            f"{path}: not a whole {kind} file ({why}). Reading stopped.",
            hint="Check the format of the job, or copy or generate the file again.",
        ) from error
    except Exception as error:
        # Each storage has exceptions of its own.
        if isinstance(error, PsrtError) or not is_url(path):
            raise
        raise unreadable(path, error) from error


def _whole(group: ArrowRows, start: int, stop: int) -> Iterator[Batch]:
    """Yield the examples of some rows: all at once, or those before the first bad one."""
    try:
        piece = group.read(start, stop)
    except DataError:
        if stop - start < 2:
            raise
        middle = (start + stop) // 2
        yield from _whole(group, start, middle)
        yield from _whole(group, middle, stop)
    else:
        yield piece


class _TableFormat:
    """Base of both formats: `pyarrow.RecordBatch` to examples."""

    def __init__(self, slots: Sequence[Slot], columns: Mapping[str, Any] | None = None) -> None:
        self.slots = tuple(slots)
        self.fields = fields_of(slots, columns)
        for field in self.fields:
            if field.separator:
                raise ConfigError(f"data.columns.{field.slot.name}: separator is for text files.")
        required("pyarrow", "parquet", "reading Parquet and Arrow files")

    def groups(self, path: Path | str, first: int = 0) -> Generator[ArrowRows, None, None]:
        """Yield the row groups from number `first` on; raises `DataError` for any other file."""
        with open_raw(path) as file, _naming(path, self._kind):
            stamp = Stamp(file, path)
            for first_row, table in self._tables(file, first):
                # A damaged file may have offsets that lead out of its buffers.
                table.validate(full=True)
                yield ArrowRows(path, self._kind, self.fields, table, first_row)
            stamp.check()

    def read(
        self, path: Path | str, batch_size: int, row_group: int = 0
    ) -> Iterator[tuple[int, Batch]]:
        """Yield (row group, examples) from a row group on, at most `batch_size` at a time."""
        with closing(self.groups(path, row_group)) as groups:
            for number, group in enumerate(groups, row_group):
                for piece in _whole(group, 0, group.rows):
                    for at in range(0, batch_rows(piece), batch_size):
                        stop = min(at + batch_size, batch_rows(piece))
                        yield number, window(piece, at, stop)

    _kind = ""

    def _tables(self, file: IO[bytes], first: int) -> Iterator[tuple[int, Any]]:
        """Yield the tables from number `first` on, each with the rows of the file before it."""
        raise NotImplementedError


class ParquetFormat(_TableFormat):
    """The format `parquet`; reads only the columns in use, unless they are given by number."""

    _kind = "Parquet"

    def _tables(self, file: IO[bytes], first: int) -> Iterator[tuple[int, Any]]:
        parquet = required("pyarrow.parquet", "parquet", "reading Parquet files")
        table = parquet.ParquetFile(file, page_checksum_verification=True)
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
        """The number of rows of a record batch is known once it is read."""
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
            yield from self._streams(file)
            return
        reader = ipc.open_file(file)
        check_file(file)
        for group in range(reader.num_record_batches):
            yield reader.get_batch(group)

    def _streams(self, file: IO[bytes]) -> Iterator[Any]:
        """Yield the record batches of consecutive streams, to the end of the file."""
        ipc = required("pyarrow.ipc", "parquet", "reading Arrow files")
        size = file.seek(0, io.SEEK_END)
        at = file.seek(0)
        while at < size or not size:
            stream = ipc.open_stream(file)
            at = file.tell()
            for table in stream:
                at = file.tell()
                yield table
            at = behind_stream(file, at)
