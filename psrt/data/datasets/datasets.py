"""`QueueDataset`: files of examples as batches, read while training.

    dataset = psrt.QueueDataset(slots, files=["part-*"], batch_size=512, threads=2)
    for batch in dataset.batches(): …

It reads its files again in every pass and holds a few batches. Its threads end with the pass, also
if that stops early.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NoReturn

from psrt.core.errors import ConfigError
from psrt.data.datasets.in_memory import InMemoryDataset
from psrt.data.reading import DatasetSettings, QueueReader
from psrt.data.slots import Batch
from psrt.data.sources import BEGINNING, Place

_QUEUED_BATCHES = 8


class QueueDataset(DatasetSettings):
    """Files read while training; examples come in the order they are read.

    With one thread that is the order of files and lines.
    """

    _reader: QueueReader | None = None

    @property
    def place(self) -> Place:
        """The unread rest behind the last batch of the last pass."""
        return BEGINNING if self._reader is None else self._reader.place

    def batches(self, first: Place = BEGINNING) -> Generator[Batch, None, None]:
        """Yield batches of one pass over the files, arrays in the shapes of the vars.

        `first`: start, a `place` of an earlier pass over these files.
        """
        self._reader = reader = QueueReader(
            self._paths(),
            self._slots,
            self._batch_size,
            self._threads,
            max(_QUEUED_BATCHES, 2 * self._threads),
            source=self._source(),
            format=self._format(),
            first=first,
            wait_timeout_s=self.wait_timeout_s,
            counters=self.counters,
        )
        with reader as batches:
            for batch in batches:
                yield self._shaped(batch)

    def local_shuffle(self, *args: Any, **options: Any) -> NoReturn:
        """Raise an error: a queue keeps no records to shuffle."""
        raise _streams("local_shuffle")

    def global_shuffle(self, *args: Any, **options: Any) -> NoReturn:
        """Raise an error: a queue keeps no records to shuffle."""
        raise _streams("global_shuffle")


def _streams(method: str) -> ConfigError:
    return ConfigError(
        f"{method} was called on a QueueDataset, which reads its files while training.",
        hint="InMemoryDataset shuffles; or shuffle the list of files.",
    )


__all__ = ["InMemoryDataset", "QueueDataset"]
