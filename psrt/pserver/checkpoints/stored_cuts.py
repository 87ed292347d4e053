"""All cuts in a directory, complete or not: their files, bases and removal."""

from __future__ import annotations

from collections.abc import Sequence

from psrt.core.errors import StorageError
from psrt.pserver.checkpoints import cut_files
from psrt.pserver.checkpoints.saved_cut import complete_cuts, read_manifest
from psrt.storage.directory import Directory


class Bases:
    """The cuts that those of a directory continue, read from their manifests once each."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._known: dict[int, tuple[int, ...]] = {}

    def of(self, number: int) -> Sequence[int]:
        """The cuts that the parts of a cut continue; all older ones if its manifest is damaged."""
        if number not in self._known:
            try:
                manifest = read_manifest(self._directory, number)
            except StorageError:
                return [each for each in complete_cuts(self._directory) if each < number]
            self._known[number] = tuple(manifest.get("bases", ()))
        return self._known[number]


def files_by_cut(directory: Directory) -> dict[int, list[str]]:
    """The names of the files of each cut, in rising order of numbers.

    A cut without a manifest is being written, or was never completed.
    """
    found: dict[int, list[str]] = {}
    for name in directory.names("cut-"):
        number = cut_files.number_of(name)
        if number is not None:
            found.setdefault(number, []).append(name)
    return dict(sorted(found.items()))


def has_part(directory: Directory, number: int, index: int) -> bool:
    """True if pserver `index` has written its part of cut `number`, perhaps in a former process."""
    record = cut_files.part_name(number, index)
    return record in directory.names(record)


def remove_part(directory: Directory, number: int, index: int) -> None:
    """Delete the files of one pserver's part of a cut that was given up."""
    record = cut_files.part_name(number, index)
    arrays = directory.names(cut_files.arrays_prefix(number, index))
    directory.remove(record, *arrays)


def remove_cut(directory: Directory, number: int) -> None:
    """Delete a cut, its manifest first: without it no cut counts."""
    directory.remove(cut_files.manifest_name(number))
    directory.remove(*directory.names(cut_files.cut_prefix(number)))
