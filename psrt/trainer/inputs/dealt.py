"""Epochs whose files were dealt again to another number of trainers, and their JSON.

Such an epoch lasts until its files are read; the epochs behind it are shared out as always.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from psrt.core.urls import is_url
from psrt.data.sources import DataFile, FilePart, Place, Position


@dataclass(frozen=True)
class DealtEpoch:
    """Files of one trainer in epoch `epoch`, in order, and the place where it begins in them."""

    epoch: int
    files: tuple[DataFile, ...]
    place: Place

    def plain(self) -> dict[str, Any]:
        """The epoch as JSON; `of` reads it."""
        files = [_plain(file) for file in self.files]
        return {"epoch": self.epoch, "files": files, "place": asdict(self.place)}

    @classmethod
    def of(cls, plain: dict[str, Any]) -> Self:
        """Read what `plain` returned; raises `KeyError` or `TypeError` for anything else."""
        return cls(plain["epoch"], tuple(map(_file, plain["files"])), place_of(plain["place"]))


def place_of(plain: dict[str, Any]) -> Place:
    """Read a place from JSON; raises `KeyError` or `TypeError` for anything else."""
    positions = tuple(Position(**position) for position in plain["positions"])
    return Place(positions, plain["next_file"])


def _plain(file: DataFile) -> Any:
    if isinstance(file, FilePart):
        return {"path": str(file.path), "start": file.start, "stop": file.stop}
    return str(file)


def _file(plain: Any) -> DataFile:
    if isinstance(plain, dict):
        return FilePart(Path(plain["path"]), plain["start"], plain["stop"])
    return plain if is_url(plain) else Path(plain)
