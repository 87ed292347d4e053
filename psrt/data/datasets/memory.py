"""The memory of a dataset: records, their order, and slots exchanged between them.

Pieces from files or other trainers are joined, and merged by ins_id, when a record is first used;
until then they can be passed on one by one. Shuffling does not move records: it draws an order of
their numbers.
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

    `_merge_size` implies that records are not merged yet.
    """

    def __init__(self) -> None:
        self.layout = Layout(())
        self._pieces: deque[Records] | None = None
        self._records: Records | None = None
        self._merge_size: int | None = None
        self._order: I64 | None = None
        self._exchange: SlotExchange | None = None

    def load(self, layout: Layout, pieces: deque[Records], merge_size: int | None) -> None:
        """Replace the memory by `pieces`; `merge_size` is that of `psrt.data.datasets.merging`."""
        self.layout, self._merge_size = layout, merge_size
        self.put(pieces)

    def put(self, pieces: deque[Records]) -> None:
        """Replace the memory by `pieces` of the present layout, in their order."""
        self.clear()
        self._pieces = pieces

    def take(self) -> deque[Records]:
        """Return and drop all records, in the order they were loaded, joined or not."""
        pieces = self._pieces if self._pieces is not None else deque([self.records])
        self.clear()
        return pieces

    def clear(self) -> None:
        """Drop all records."""
        self._pieces = self._records = self._order = self._exchange = None

    @property
    def records(self) -> Records:
        """All records in the order they were loaded; raises `ConfigError` if there are none."""
        if self._records is None:
            if self._pieces is None:
                raise ConfigError(
                    "the dataset has nothing in memory.", hint="load_into_memory() comes first."
                )
            records = joined(self.layout, self._pieces)
            self._pieces.append(records)  # kept if merging fails
            if self._merge_size is not None:
                records = merged(records, self._merge_size)
            self._records, self._pieces, self._merge_size = records, None, None
        return self._records

    def shuffle(self, draw: np.random.Generator) -> None:
        """Permute the present order."""
        order = np.arange(len(self.records)) if self._order is None else self._order
        self._order = draw.permutation(order)

    def exchange(self, slots: Collection[str], draw: np.random.Generator) -> None:
        """Give each record, in these slots, the values of another; no slots: undo."""
        known = [slot.name for slot in self.records.layout.slots]
        if unknown := sorted(set(slots) - set(known)):
            raise ConfigError(
                f"slots_shuffle: the dataset has no slot {unknown[0]!r}.",
                hint=f"It has {', '.join(known)}.",
            )
        order = draw.permutation(len(self.records))
        self._exchange = SlotExchange(frozenset(slots), order) if slots else None

    def batches(self, batch_size: int, first: int = 0) -> Generator[Batch, None, None]:
        """Yield the records from number `first` on, in the present order; the last batch may be
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
        """Bytes of the records, their order (8 per record) and the exchange (another 8)."""
        orders = [self._order, self._exchange.order if self._exchange else None]
        held = sum(records.memory_bytes for records in self._held())
        return held + sum(order.nbytes for order in orders if order is not None)

    def _held(self) -> Collection[Records]:
        return [self._records] if self._records is not None else self._pieces or ()
