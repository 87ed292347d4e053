"""All cuts in a directory, complete or not: their files and their removal."""

from __future__ import annotations

from psrt.pserver.checkpoints import cut_files
from psrt.storage.directory import Directory


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


def remove_cut(directory: Directory, number: int) -> None:
    """Delete a cut, its manifest first: without it no cut counts."""
    directory.remove(cut_files.manifest_name(number))
    directory.remove(*directory.names(cut_files.cut_prefix(number)))
