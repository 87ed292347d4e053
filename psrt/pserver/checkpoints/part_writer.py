"""Frozen tables to files: all dense blocks in one array file, a file for each sparse table.

A page has the name of its table in its meta data. The record of the part has the facts of each
table, its file, and the seal of the file, by which any changed byte is found.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from psrt.core.failpoints import reach
from psrt.pserver.checkpoints import cut_files
from psrt.pserver.frozen import Meta, Page
from psrt.storage import json_file
from psrt.storage.array_writer import ArrayFileWriter
from psrt.storage.directory import Directory
from psrt.storage.pacing import PacedWriter, WritePace


class PagedTable(Protocol):
    """A table to be written: facts, and pages that may be taken once."""

    meta: Meta

    def pages(self) -> Iterable[Page]: ...


class Frozen(PagedTable, Protocol):
    """A frozen table. `confirm` it once its pages belong to a complete cut.

    `size_bytes` is about what its pages will have, `buffered_bytes` the memory of copies of what
    has changed since, which wait to be written.
    """

    @property
    def size_bytes(self) -> int: ...

    @property
    def buffered_bytes(self) -> int: ...

    def confirm(self) -> None: ...

    def close(self) -> None: ...


def write_part(
    directory: Directory,
    number: int,
    index: int,
    dense: Sequence[PagedTable],
    sparse: Sequence[PagedTable],
    facts: Mapping[str, Any],
    base: int = 0,
    kind: str = "part",
    states: Callable[[], Iterable[dict[str, Any]]] = tuple,
    pace: WritePace | None = None,
) -> str:
    """Write the part of pserver `index` durably; returns its record as text.

    `facts` are JSON: what else belongs to the state of this pserver. `base` is the cut that the
    part continues, 0 = none. `kind` begins the names of its files. `states` waits for the files of
    trainer states, and returns them. `pace` has the waits between writes.
    """
    prefix = cut_files.arrays_prefix(number, index, kind)
    files = write_tables(directory, prefix, dense, sparse, pace)
    files += states()
    members = {"index": index, "base": base, "files": files, **facts}
    record = json_file.encode(cut_files.FORMAT_PART, cut_files.VERSION, members)
    reach("cut.before_part")
    directory.commit(cut_files.part_name(number, index, kind), record)
    reach("cut.after_part")
    return record.decode("ascii")


def size_of_part(record: str) -> int:
    """Bytes of the files of a part, by its record."""
    files: list[dict[str, Any]] = json.loads(record)["files"]
    return sum(int(each["seal"]["bytes"]) for each in files) + len(record)


def write_tables(
    directory: Directory,
    prefix: str,
    dense: Sequence[PagedTable],
    sparse: Sequence[PagedTable],
    pace: WritePace | None = None,
) -> list[dict[str, Any]]:
    """Write array files whose names begin with `prefix`; returns name, seal and tables of each."""
    files = [_write_file(directory, f"{prefix}dense.arrays", dense, pace)]
    for position, table in enumerate(sparse):
        files.append(_write_file(directory, f"{prefix}table-{position}.arrays", [table], pace))
    return files


def _write_file(
    directory: Directory, name: str, tables: Sequence[PagedTable], pace: WritePace | None
) -> dict[str, Any]:
    """Write the pages of tables one after the other; returns name, seal and tables of the file."""
    with directory.write(name) as out:
        writer = ArrayFileWriter(PacedWriter(out, pace) if pace is not None and pace.waits else out)
        written = [_write_table(writer, table) for table in tables]
        seal = writer.finish()
    return {"name": name, "seal": seal.to_plain(), "tables": written}


def _write_table(writer: ArrayFileWriter, table: PagedTable) -> dict[str, Any]:
    count = 0
    for page in table.pages():
        writer.page({"table": table.meta["table"]}, page)
        count += 1
    return {"pages": count, "facts": table.meta}
