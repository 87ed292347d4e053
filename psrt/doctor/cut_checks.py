"""Findings of a directory of cuts: damaged ones, and the one to resume from instead."""

from __future__ import annotations

from collections.abc import Iterator

from psrt.core.errors import PsrtError
from psrt.doctor.findings import Finding
from psrt.pserver.checkpoints import complete_cuts, find_cut
from psrt.storage.directory import Directory
from psrt.storage.locate import directory_at

MOST_BYTES = 256 << 20
"""Bytes of array files that are read of the newest cut, which takes a second or so."""


def check_cuts(location: str) -> list[Finding]:
    """Read all documents, and the array files of the newest cut up to `MOST_BYTES`.

    A location that cannot be read has no cuts here; the checks of the host name it.
    """
    try:
        directory = directory_at(location)
        numbers = sorted(complete_cuts(directory))
    except (OSError, PsrtError):
        return []
    torn = {number: why for number in numbers if (why := _damage(directory, number, numbers))}
    whole = [number for number in numbers if number not in torn]
    remedy = f"Resume from cut {whole[-1]}" if whole else "No cut is whole: begin anew"
    return [
        Finding(
            "torn-cut",
            location,
            f"cut {number} is damaged: {why}",
            f"{remedy}. psrt checkpoint verify reads every byte of all cuts.",
        )
        for number, why in torn.items()
    ]


def _damage(directory: Directory, number: int, numbers: list[int]) -> str:
    try:
        found = find_cut(directory, str(number))
        if number == numbers[-1]:
            _read(found.verify())
    except PsrtError as error:
        return error.message
    return ""


def _read(files: Iterator[tuple[str, int]]) -> None:
    """Verify files until they have `MOST_BYTES`; raises `StorageError` for a damaged one."""
    total = 0
    for _, size in files:
        total += size
        if total >= MOST_BYTES:
            return
