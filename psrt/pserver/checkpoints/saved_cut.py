"""A complete cut: its manifest, and the pages of its tables for a pserver that restores them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from psrt.core.errors import ConfigError
from psrt.core.specs import DenseTableSpec, TableSpec
from psrt.pserver.checkpoints import cut_files
from psrt.pserver.frozen import FrozenPages, Meta, Page
from psrt.storage import json_file
from psrt.storage.array_reader import ArrayFileReader
from psrt.storage.directory import Directory, contents
from psrt.storage.failures import damaged
from psrt.storage.seals import Seal


@dataclass(frozen=True)
class SavedCut:
    """One complete cut in a directory; `manifest` and `parts` are as written."""

    directory: Directory
    number: int
    manifest: dict[str, Any]
    parts: tuple[dict[str, Any], ...]

    def position_of(self, trainer: int) -> str:
        """The position that a trainer goes on from; empty if it took no part."""
        return str(self.manifest["positions"].get(str(trainer), ""))

    def restore_into(self, table: Any) -> None:
        """Fill a table, dense or sparse, from the pages of this cut that belong to it."""
        table.restore(list(self._sources(table.spec)))

    def verify(self) -> Iterator[tuple[str, int]]:
        """Read every byte of every file; yields names and sizes, raises `StorageError`."""
        for part in self.parts:
            for file in part["files"]:
                with self.directory.read(file["name"]) as opened:
                    ArrayFileReader(opened, Seal.from_plain(file["seal"])).verify()
                    yield file["name"], opened.size_bytes

    def _sources(self, spec: TableSpec) -> Iterator[FrozenPages]:
        for part in self.parts:
            for file in part["files"]:
                first = 0
                for table in file["tables"]:
                    if _is_of(spec, table["facts"]):
                        numbers = range(first, first + table["pages"])
                        yield FrozenPages(table["facts"], self._pages(file, numbers))
                    first += table["pages"]

    def _pages(self, file: dict[str, Any], numbers: range) -> Iterator[Page]:
        with self.directory.read(file["name"]) as opened:
            reader = ArrayFileReader(opened, Seal.from_plain(file["seal"]))
            yield from (reader.page(number).arrays for number in numbers)


def complete_cuts(directory: Directory) -> list[int]:
    """The numbers of the complete cuts, in rising order."""
    numbers = map(cut_files.complete_number, directory.names("cut-"))
    return sorted(number for number in numbers if number is not None)


def find_cut(directory: Directory, which: str) -> SavedCut:
    """The cut `latest`, or that of a number; raises `ConfigError` if it is not complete."""
    numbers = complete_cuts(directory)
    wanted = numbers[-1] if which == "latest" and numbers else None
    if which.isdecimal() and int(which) in numbers:
        wanted = int(which)
    if wanted is None:
        have = ", ".join(map(str, numbers)) or "none"
        raise ConfigError(
            f"{directory.location} has no complete cut {which!r}; it has {have}.",
            hint="`psrt checkpoint list DIR` shows the cuts of a directory.",
        )
    return open_cut(directory, wanted)


def open_cut(directory: Directory, number: int) -> SavedCut:
    """Read the manifest and the records of a cut; raises `StorageError` if one is damaged."""
    manifest = _read(directory, cut_files.manifest_name(number), cut_files.FORMAT_MANIFEST)
    parts = tuple(
        _read(directory, part["name"], cut_files.FORMAT_PART, part["xxh3"])
        for part in manifest["parts"]
    )
    return SavedCut(directory, number, manifest, parts)


def _read(directory: Directory, name: str, format_name: str, digest: str = "") -> dict[str, Any]:
    data = contents(directory, name)
    if digest and cut_files.digest_of(data) != digest:
        raise damaged(name, "it is not the file that the manifest of its cut names")
    return json_file.decode(name, data, format_name, cut_files.VERSION)


def _is_of(spec: TableSpec, meta: Meta) -> bool:
    """True if a frozen table may have values of `spec`; blocks of a parameter fit by name of it."""
    if isinstance(spec, DenseTableSpec):
        return bool(meta["spec"].get("parameter") == spec.parameter)
    return bool(meta["table"] == spec.name)
