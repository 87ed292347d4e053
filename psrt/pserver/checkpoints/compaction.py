"""Compaction: a cut that builds on others becomes a full one, in its place.

New files are written beside the old ones, under other names; the new manifest then takes the place
of the old one at once, and the old files are deleted. A crash at any step leaves the cut complete,
as it was or full. Later cuts go on to build on it. No job may write to the directory meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from psrt.core.specs import DenseTableSpec
from psrt.pserver.checkpoints import cut_files
from psrt.pserver.checkpoints.merging import MergedTable
from psrt.pserver.checkpoints.part_writer import write_part
from psrt.pserver.checkpoints.saved_cut import Record, SavedCut
from psrt.storage import json_file

KIND = "full"
"""Begins the names of files that compaction writes."""


def compact(cut: SavedCut, advance: Callable[[int], object] = lambda size: None) -> bool:
    """Make a cut full; returns False for one that was.

    `advance` is called with the bytes of each page that was read. Deletes files of the cut that it
    does not name, which a compaction that was ended has left. Raises `StorageError` if a file is
    damaged or cannot be written; then the cut is as before.
    """
    if not cut.bases:
        _delete_others(cut, cut.manifest, cut.parts)
        return False
    texts = [_write_full(cut, index, advance) for index in range(len(cut.chains))]
    names = [cut_files.part_name(cut.number, index, KIND) for index in range(len(texts))]
    parts = [
        {"endpoint": part["endpoint"], "name": name, "xxh3": cut_files.digest_of(text)}
        for part, name, text in zip(cut.manifest["parts"], names, texts, strict=True)
    ]
    manifest = {**cut.manifest, "parts": parts, "bases": []}
    cut.directory.commit(
        cut_files.manifest_name(cut.number),
        json_file.encode(cut_files.FORMAT_MANIFEST, cut_files.VERSION, manifest),
    )
    records = [
        json_file.decode(name, text, cut_files.FORMAT_PART, cut_files.VERSION)
        for name, text in zip(names, texts, strict=True)
    ]
    _delete_others(cut, manifest, records)
    return True


def _write_full(cut: SavedCut, index: int, advance: Callable[[int], object]) -> bytes:
    """Write part `index` as a full one; returns its record."""
    record = cut.parts[index]
    tables = cut.tables_of(cut.chains[index]).values()
    merged = [MergedTable(stored, advance) for stored in tables]
    dense = [table for table in merged if _is_dense(table)]
    sparse = [table for table in merged if not _is_dense(table)]
    facts = {name: record[name] for name in record if name not in ("index", "base", "files")}
    states = [file for file in record["files"] if "trainer" in file]  # whole in every cut
    text = write_part(
        *(cut.directory, cut.number, index, dense, sparse, facts), kind=KIND, states=lambda: states
    )
    return text.encode("ascii")


def _is_dense(table: MergedTable) -> bool:
    return bool(table.meta["spec"]["kind"] == DenseTableSpec.__name__)


def _delete_others(cut: SavedCut, manifest: Record, records: Sequence[Record]) -> None:
    """Delete the files of a cut that belong neither to its manifest nor to its parts; those of
    trainers stay."""
    named = {cut_files.manifest_name(cut.number), *(part["name"] for part in manifest["parts"])}
    named |= {file["name"] for record in records for file in record["files"]}
    here = cut.directory.names(cut_files.cut_prefix(cut.number))
    others = [name for name in here if name not in named and not cut_files.is_beside(name)]
    if others:
        cut.directory.remove(*others)
