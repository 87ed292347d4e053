"""A complete cut: its manifest, and the pages of its tables for a pserver that restores them.

A part may continue that of an earlier cut. Its *chain* are the records from the full part on, of
which tables are restored in this order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from psrt.core.errors import ConfigError
from psrt.core.specs import DenseTableSpec, TableSpec
from psrt.pserver.checkpoints import cut_files
from psrt.pserver.frozen import FrozenPages, Meta, Page
from psrt.storage import json_file
from psrt.storage.array_reader import ArrayFileReader, ArrayPage
from psrt.storage.directory import Directory, contents
from psrt.storage.failures import damaged
from psrt.storage.seals import Seal

Record: TypeAlias = dict[str, Any]
"""The record of a part, as written."""


@dataclass(frozen=True)
class StoredTable:
    """A freeze of a table: its facts, and its pages in an array file."""

    directory: Directory
    facts: Meta
    file: dict[str, Any]
    numbers: range

    def pages(self) -> Iterator[Page]:
        """The verified pages; raises `StorageError` if one is damaged."""
        with self.opened() as reader:
            yield from (reader.page(number).arrays for number in self.numbers)

    @contextmanager
    def opened(self) -> Iterator[ArrayFileReader]:
        """Open the array file; raises `StorageError` if it is missing or another one."""
        with self.directory.read(self.file["name"]) as opened:
            yield ArrayFileReader(opened, Seal.from_plain(self.file["seal"]))


class StoredPages(NamedTuple):
    """The pages `numbers` of an array file, which hold one table; `facts` are those of its freeze.

    `file` has the name and the seal of the array file.
    """

    facts: Meta
    file: dict[str, Any]
    numbers: range


@dataclass(frozen=True)
class SavedCut:
    """One complete cut in a directory; `manifest` and `parts` are as written.

    `chains` has for each part the records from the full one to that of this cut.
    """

    directory: Directory
    number: int
    manifest: dict[str, Any]
    parts: tuple[Record, ...]
    chains: tuple[tuple[Record, ...], ...]

    @property
    def bases(self) -> tuple[int, ...]:
        """The cuts that parts of this one continue; empty for a full cut."""
        return tuple(self.manifest.get("bases", ()))

    @property
    def files(self) -> list[dict[str, Any]]:
        """Name and seal of each array file, those of the cuts that it builds on first."""
        records = [record for chain in self.chains for record in chain]
        return [file for record in records for file in record["files"]]

    def position_of(self, trainer: int) -> str:
        """The position that a trainer goes on from; empty if it took no part."""
        return str(self.manifest["positions"].get(str(trainer), ""))

    @property
    def trainers(self) -> int:
        """The number of trainers of the job that made the cut."""
        return int(self.manifest["job"]["trainers"])

    @property
    def positions(self) -> tuple[str, ...]:
        """The positions of all trainers by number; empty texts for those that took no part."""
        return tuple(map(self.position_of, range(self.trainers)))

    @property
    def has_states(self) -> bool:
        """True if the cut has states of trainers: the mode was Geo."""
        return any(self._files_of_states())

    @property
    def states(self) -> int:
        """The number of trainers that may have a state in the cut.

        More than `trainers` if a job went on from a cut of more, and one that is to go on with the
        states of several had not joined.
        """
        numbers = (int(file["trainer"]) for file in self._files_of_states())
        return max([self.trainers, *(number + 1 for number in numbers)])

    def state_page(self, trainer: int, number: int) -> tuple[ArrayPage, bool] | None:
        """Page `number` of the state of a trainer, and True if it is the last one.

        None if the cut has no such state: the mode was not Geo, or the trainer took no part.
        """
        for file in self._files_of_states():
            if file["trainer"] == trainer:
                with self.directory.read(file["name"]) as opened:
                    reader = ArrayFileReader(opened, Seal.from_plain(file["seal"]))
                    if number < len(reader):
                        return reader.page(number), number + 1 == len(reader)
        return None

    def _files_of_states(self) -> Iterator[dict[str, Any]]:
        return (each for part in self.parts for each in part["files"] if "trainer" in each)

    def restore_into(self, table: Any) -> None:
        """Fill a table, dense or sparse, from the pages of this cut that belong to it."""
        stored = self.stored_of(table.spec)
        table.restore([FrozenPages(each.facts, each.pages()) for each in stored])

    def stored_of(self, spec: TableSpec) -> list[StoredTable]:
        """The freezes that a table of `spec` is restored from, in this order."""
        needed: list[StoredTable] = []
        for chain in self.chains:
            for stored in self.tables_of(chain).values():
                if _is_of(spec, stored[-1].facts):
                    needed += newest_block(stored) if isinstance(spec, DenseTableSpec) else stored
        return needed

    def verify(self, whole: Set[str] = frozenset()) -> Iterator[tuple[str, int]]:
        """Read every byte of every file that it needs; yields names and sizes.

        Files named in `whole` are not read again. Raises `StorageError` for a damaged file.
        """
        for file in self.files:
            if file["name"] not in whole:
                with self.directory.read(file["name"]) as opened:
                    ArrayFileReader(opened, Seal.from_plain(file["seal"])).verify()
            yield file["name"], file["seal"]["bytes"]

    def tables_of(self, chain: Iterable[Record]) -> dict[str, list[StoredTable]]:
        """The tables of a part by name: each as its full freeze, then its deltas in order."""
        found: dict[str, list[StoredTable]] = {}
        for record in chain:
            for table in _stored(self.directory, record):
                is_full = table.facts["kind"] == "full"
                before = [] if is_full else found.get(table.facts["table"], [])
                found[table.facts["table"]] = [*before, table]
        return found

    def stored_pages(self) -> Iterator[StoredPages]:
        """All tables of all parts; where two have values of one element or row, later ones win."""
        for record in (record for chain in self.chains for record in chain):
            for table in _stored(self.directory, record):
                yield StoredPages(table.facts, table.file, table.numbers)

    @contextmanager
    def opened(self, file: dict[str, Any]) -> Iterator[ArrayFileReader]:
        """Open an array file of this cut; raises `StorageError` if it is missing or another one."""
        with self.directory.read(file["name"]) as opened:
            yield ArrayFileReader(opened, Seal.from_plain(file["seal"]))


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
    """Read the manifest and the records of a cut, and of those that it builds on.

    Raises `StorageError` if one is damaged or missing.
    """
    manifest = read_manifest(directory, number)
    earlier = {number: _records(directory, manifest)}
    parts = earlier[number]
    chains = tuple(_chain(directory, number, index, earlier) for index in range(len(parts)))
    return SavedCut(directory, number, manifest, parts, chains)


def read_manifest(directory: Directory, number: int) -> dict[str, Any]:
    """The manifest of a complete cut; raises `StorageError` if it is damaged or missing."""
    return _read(directory, cut_files.manifest_name(number), cut_files.FORMAT_MANIFEST)


def newest_block(stored: Sequence[StoredTable]) -> Sequence[StoredTable]:
    """The newest of several freezes of a dense block that has values: they are whole."""
    return [table for table in stored if table.numbers][-1:]


def _records(directory: Directory, manifest: dict[str, Any]) -> tuple[Record, ...]:
    return tuple(
        _read(directory, part["name"], cut_files.FORMAT_PART, part["xxh3"])
        for part in manifest["parts"]
    )


def _chain(
    directory: Directory, number: int, index: int, earlier: dict[int, tuple[Record, ...]]
) -> tuple[Record, ...]:
    """The records of part `index` from the full one on; `earlier` keeps those of other cuts."""
    chain = [earlier[number][index]]
    while base := chain[0].get("base", 0):
        if not 0 < base < number:
            name = cut_files.part_name(number, index)
            raise damaged(name, f"it continues cut {base}, which is not an earlier one")
        number = base
        if number not in earlier:
            earlier[number] = _records(directory, read_manifest(directory, number))
        chain.insert(0, earlier[number][index])
    return tuple(chain)


def _stored(directory: Directory, record: Record) -> Iterator[StoredTable]:
    for file in record["files"]:
        first = 0
        for table in file.get("tables", ()):
            numbers = range(first, first + table["pages"])
            yield StoredTable(directory, table["facts"], file, numbers)
            first += table["pages"]


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
