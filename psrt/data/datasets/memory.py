"""The memory of a dataset: records, the order they come in, and slots exchanged between them.

Pieces, as they were loaded or came from other trainers, are joined, and merged by ins_id, when a
record is first asked for; until then they can be handed on one by one. Records stay where they are:
shuffling draws an order of their numbers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Generator

import numpy as np

from psrt.core.errors import ConfigError
from psrt.core.types import I64
from psrt.data.datasets.merging import merged
from psrt.data.datasets.records import Layout, Records, SlotExchange, joined
from psrt.data.slots import Batch


class RecordMemory:
    """Empty, or with pieces, or with records, never both; an order or exchange implies records.

    `_merge_size` implies that records are still to be merged.
    """

    def __init__(self) -> None:
        self.layout = Layout(())
        self._pieces: deque[Records] | None = None
        self._records: Records | None = None
        self._merge_size: int | None = None
        self._order: I64 | None = None
        self._exchange: SlotExchange | None = None

    def load(self, layout: Layout, pieces: deque[Records], merge_size: int | None) -> None:
        """Keep these and no others; see `psrt.data.datasets.merging.merged` for `merge_size`."""
        self.layout, self._merge_size = layout, merge_size
        self.put(pieces)

    def put(self, pieces: deque[Records]) -> None:
        """Keep these, of the same layout, and no others, in their order."""
        self.clear()
        self._pieces = pieces

    def take(self) -> deque[Records]:
        """Give up all records, in the order they were loaded, joined or not."""
        pieces = self._pieces if self._pieces is not None else deque([self.records])
        self.clear()
        return pieces

    def clear(self) -> None:
        """Give up all records for good."""
        self._pieces = self._records = self._order = self._exchange = None

    @property
    def records(self) -> Records:
        """In the order they were loaded; raises `ConfigError` if the memory is empty."""
        if self._records is None:
            if self._pieces is None:
                raise ConfigError(
                    "the dataset has nothing in memory.", hint="load_into_memory() comes first."
                )
            records = joined(self.layout, self._pieces)
            self._pieces.append(records)  # where they are found again if merging fails
            if self._merge_size is not None:
                records = merged(records, self._merge_size)
            self._records, self._pieces, self._merge_size = records, None, None
        return self._records

    def shuffle(self, draw: np.random.Generator) -> None:
        """Another order, drawn from the one there is."""
        order = np.arange(len(self.records)) if self._order is None else self._order
        self._order = draw.permutation(order)

    def exchange(self, slots: Collection[str], draw: np.random.Generator) -> None:
        """Give each record the values that another was read with in these slots; no slots: undo."""
        known = [slot.name for slot in self.records.layout.slots]
        if unknown := sorted(set(slots) - set(known)):
            raise ConfigError(
                f"slots_shuffle: the dataset has no slot {unknown[0]!r}.",
                hint=f"It has {', '.join(known)}.",
            )
        order = draw.permutation(len(self.records))
        self._exchange = SlotExchange(frozenset(slots), order) if slots else None

    def batches(self, batch_size: int, first: int = 0) -> Generator[Batch, None, None]:
        """The records from the `first` on, in their order as it is now; the last batch may be
        smaller."""
        records, order, exchange = self.records, self._order, self._exchange
        for start in range(first, len(records), batch_size):
            rows = np.arange(start, min(start + batch_size, len(records)))
            yield records.batch(rows if order is None else order[rows], exchange)

    @property
    def is_shuffled(self) -> bool:
        return self._order is not None

    def __len__(self) -> int:
        return sum(map(len, self._held()))

    @property
    def size_bytes(self) -> int:
        """Of the records, their order (8 a record) and the exchange (another 8)."""
        orders = [self._order, self._exchange.order if self._exchange else None]
        held = sum(records.memory_bytes for records in self._held())
        return held + sum(order.nbytes for order in orders if order is not None)

    def _held(self) -> Collection[Records]:
        return [self._records] if self._records is not None else self._pieces or ()
