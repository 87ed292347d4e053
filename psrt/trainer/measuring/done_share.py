"""The share of a training that is done, by the bytes of its files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from psrt.data.sources import DataFile, FilePart, Place, in_epoch

_PACKED = (".gz", ".zst")


class DoneShare:
    """Estimates from places in the data; 0 of unknown sizes (URLs, compressed files, Parquet).

    `files` are those of one trainer, in an order that `seed` draws anew for each of `epochs`.
    """

    def __init__(self, files: Sequence[DataFile], seed: int, epochs: int) -> None:
        self._files, self._seed, self._epochs = files, seed, epochs
        self._sizes = {str(each): _size(each) for each in files}
        self._total = sum(size or 0 for size in self._sizes.values())
        self._is_known = self._total > 0 and None not in self._sizes.values()

    def at(self, epoch: int, place: Place) -> float:
        """The share behind `place` in an epoch, counted from 1; 0 = unknown."""
        if not self._is_known:
            return 0.0
        rest = sum(self._rest(each.file, each.offset) for each in place.positions)
        order = in_epoch(self._files, self._seed, epoch)
        rest += sum(self._rest(str(each), 0) for each in order[place.next_file :])
        within = 1.0 - min(rest, self._total) / self._total
        return min(1.0, (epoch - 1 + within) / self._epochs)

    def _rest(self, file: str, offset: int) -> int:
        size = self._sizes.get(file) or 0
        start = int(file.rpartition("[")[2].partition(":")[0]) if file.endswith("]") else 0
        return max(0, size - max(0, offset - start))


def _size(file: DataFile) -> int | None:
    """Bytes of a plain file or part; None if they do not tell how much of it is read."""
    if isinstance(file, FilePart):
        return file.stop - file.start
    if isinstance(file, str) or file.suffix in (*_PACKED, ".parquet", ".arrow", ".feather"):
        return None
    try:
        return Path(file).stat().st_size
    except OSError:
        return None


def as_duration(seconds: float) -> str:
    """`0:07`, `12:30`, `1:02:03`."""
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
