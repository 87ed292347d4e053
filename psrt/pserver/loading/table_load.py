"""One table's values in a cut, as stages of pages that several threads may put.

A full freeze is one stage, a delta two: its deleted ids come before its rows, since an id may have
begun anew. A dense table is one page: its blocks are small, and have to be read together.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import zip_longest
from typing import Any, TypeAlias

from psrt.core.failpoints import reach
from psrt.core.specs import DenseTableSpec
from psrt.kernels.jit import warm_up
from psrt.pserver.checkpoints import SavedCut, StoredTable
from psrt.pserver.frozen import FrozenPages, Meta, belongs, check_covered
from psrt.storage.array_reader import ArrayFileReader

Task: TypeAlias = Callable[[], None]

HANDS = 4
"""Parts of a freeze that pages are taken from in turn: neighbours are rows of one stripe, which one
thread at a time can insert."""


class TableLoad:
    """The restore of an empty `table` from a cut; any thread calls the tasks of one stage.

    The table has the version, time and counters of the cut at once. Raises `TableError` if a freeze
    does not fit the table, or lacks a part of a dense one.
    """

    def __init__(self, table: Any, cut: SavedCut) -> None:
        self.table, self.name = table, table.spec.name
        self.is_dense = isinstance(table.spec, DenseTableSpec)
        self._opening, self._files = threading.Lock(), ExitStack()
        self._readers: dict[str, ArrayFileReader] = {}
        self._has_begun = False
        freezes = cut.stored_of(table.spec)
        self._stages: list[list[Task]] = []
        if self.is_dense:
            check_covered(table.spec, [stored.facts for stored in freezes])
            self._stages = [[partial(self._restore, freezes)]]
        else:
            warm_up(["freeze"])
            chain: dict[int, Meta] = {}
            for stored in freezes:
                if belongs(table.spec, stored.facts, chain):
                    table.put_facts(stored.facts)
                    self._stages += self._stages_of(stored)

    @property
    def pages(self) -> list[int]:
        """The number of pages of each stage."""
        return [len(stage) for stage in self._stages]

    def put(self, stage: int, number: int) -> None:
        """Put a page of a stage, once those of earlier stages are put.

        Raises `StorageError` if it is damaged, and `TableError` if it does not fit.
        """
        with self._opening:
            is_first, self._has_begun = not self._has_begun, True
        if is_first:
            reach("restore.table")
        self._stages[stage][number]()

    def close(self) -> None:
        """Close the files, once no task runs."""
        with self._opening:
            self._files.close()
            self._readers.clear()

    def _restore(self, freezes: Sequence[StoredTable]) -> None:
        self.table.restore([FrozenPages(each.facts, each.pages()) for each in freezes])

    def _stages_of(self, stored: StoredTable) -> list[list[Task]]:
        order = in_turn(stored.numbers)
        pages: list[Task] = [
            partial(self._put, stored, number, order[place + HANDS : place + HANDS + 1])
            for place, number in enumerate(order)
        ]
        if stored.facts["kind"] == "full":
            return [pages]
        return [[partial(self._delete, stored)], pages]

    def _put(self, stored: StoredTable, number: int, later: list[int]) -> None:
        """Put one page of rows, while the disk reads later ones; deleted ids of a delta are gone
        already."""
        reader = self._reader(stored)
        for each in later:
            reader.read_ahead(each)
        page = reader.page(number).arrays
        if stored.facts["kind"] == "full" or not _has_deleted(page):
            self.table.put_page(page)

    def _delete(self, stored: StoredTable) -> None:
        """Put all pages of deleted ids of a delta."""
        reader = self._reader(stored)
        for number in stored.numbers:
            if _has_deleted(reader.shapes(number)):
                self.table.put_page(reader.page(number).arrays)

    def _reader(self, stored: StoredTable) -> ArrayFileReader:
        """The reader of an array file, which stays open; several threads may use it."""
        with self._opening:
            name = stored.file["name"]
            if name not in self._readers:
                self._readers[name] = self._files.enter_context(stored.opened())
            return self._readers[name]


def in_turn(numbers: range) -> list[int]:
    """The numbers, from `HANDS` near-equal parts of the range in turn."""
    size = -(-len(numbers) // HANDS) or 1
    parts = [numbers[start : start + size] for start in range(0, len(numbers), size)]
    return [number for each in zip_longest(*parts) for number in each if number is not None]


def _has_deleted(names: Any) -> bool:
    return "deleted" in names or "long_deleted" in names
