"""States of Geo trainers that have not joined their resumed job: each cut has them from that one.

Such a trainer has its position in the cut, and will need the changes that it held there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from psrt.pserver.checkpoints import cut_files
from psrt.pserver.checkpoints.saved_cut import SavedCut
from psrt.storage.array_reader import ArrayPage
from psrt.storage.array_writer import ArrayFileWriter
from psrt.storage.directory import Directory


@dataclass(frozen=True)
class LateStates:
    """The states in `cut` of those of its `trainers`, by number, that took part in it."""

    cut: SavedCut
    trainers: Sequence[int]

    def copied(self, directory: Directory, number: int, index: int) -> list[dict[str, Any]]:
        """Copy them into part `index` of cut `number`; returns name, seal and trainer of each file.

        Raises `StorageError` if one is damaged or cannot be written.
        """
        files = []
        for trainer in self.trainers:
            pages = _pages(self.cut, trainer)
            if (first := next(pages, None)) is None:
                continue
            name = cut_files.arrays_name(number, index, f"trainer-{trainer}")
            with directory.write(name) as out:
                writer = ArrayFileWriter(out)
                for page in chain((first,), pages):
                    writer.page(page.meta, page.arrays)
                seal = writer.finish().to_plain()
            files.append({"name": name, "seal": seal, "tables": [], "trainer": trainer})
        return files


def _pages(cut: SavedCut, trainer: int) -> Iterator[ArrayPage]:
    number, is_last = 0, False
    while not is_last and (found := cut.state_page(trainer, number)) is not None:
        page, is_last = found
        yield page
        number += 1
