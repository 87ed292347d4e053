"""A sparse table as it was at a freeze: its facts, and pages of its rows while pushes go on.

The walk goes from stripe to stripe. It holds the lock of one stripe for a slice of a page at a
time, as a reader; pages are grouped by virtual shard without a lock. Copies of rows that changed
meanwhile take memory until they are handed out: next, once they fill a page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from psrt.core.types import F32
from psrt.pserver.frozen.frozen_records import FrozenRecords
from psrt.pserver.frozen.frozen_stripe import FrozenStripe, ended
from psrt.pserver.frozen.pages import PAGE_BYTES, Meta, Page, long_page, page_of

_Content: TypeAlias = tuple[FrozenStripe, FrozenRecords]


class FrozenRows:
    """One freeze of a table. One thread takes the pages, once; any may call the rest.

    It ends with `close`, or when no reference to it is left. `meta` are the facts of the table at
    the freeze; `confirmed` gets them with `confirm`.
    """

    def __init__(
        self, meta: Meta, stripes: Sequence[FrozenStripe], confirmed: Callable[[Meta], None]
    ) -> None:
        self.meta = meta
        self._confirmed = confirmed
        self._stripes = list(stripes)
        self._confirms = [stripe.confirm for stripe in stripes]
        self._shards: int = meta["spec"]["virtual_shards"]

    def __enter__(self) -> FrozenRows:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_open(self) -> bool:
        return any(not stripe.is_closed for stripe in self._stripes)

    @property
    def saved_rows(self) -> int:
        """Rows and buckets that were copied ahead of a change so far."""
        return sum(each.saved for stripe in self._stripes for each in stripe.contents)

    @property
    def size_bytes(self) -> int:
        """About the bytes of all pages, before the first one is taken."""
        return sum(each.size_bytes for stripe in self._stripes for each in stripe.contents)

    @property
    def buffered_bytes(self) -> int:
        """Memory of copies that are not handed out yet; at most that of the rows changed."""
        return sum(each.buffered_bytes for stripe in self._stripes for each in stripe.contents)

    def pages(self) -> Iterator[Page]:
        """Everything that belongs to the freeze, each row once: see `psrt.pserver.frozen.pages`.

        Raises `InternalError` after `close`, and `TableError` if there was no memory for a copy of
        a row that had to change.
        """
        if not self._stripes:
            raise ended()
        contents = [(stripe, each) for stripe in self._stripes for each in stripe.contents]
        if deleted := [stripe.deleted for stripe in self._stripes if len(stripe.deleted)]:
            ids = np.concatenate(deleted)
            for first in range(0, len(ids), PAGE_BYTES // 8):
                yield page_of("deleted", ids[first : first + PAGE_BYTES // 8], self._shards, 0)
        for name in {records.name: None for _, records in contents}:
            yield from self._walk([pair for pair in contents if pair[1].name == name])

    def confirm(self) -> None:
        """Record that what this freeze handed out is safe: the next delta begins at it.

        May be called after `close`, too.
        """
        for confirm in self._confirms:
            confirm()
        self._confirmed(self.meta)

    def close(self) -> None:
        """End the freeze: nothing more is copied, and copies are dropped."""
        for stripe in self._stripes:
            stripe.is_closed = True
        self._stripes = []

    def _walk(self, contents: Sequence[_Content]) -> Iterator[Page]:
        """Pages of records of one kind, stripe by stripe, and between them of their copies."""
        size = min(_page_size(contents[0][1]), sum(records.count for _, records in contents))
        memory = np.full((size, contents[0][1].words), 0, np.float32)  # made before a lock is held
        for stripe, records in contents:
            while not records.is_taken:
                if sum(each.buffered_bytes for _, each in contents) >= PAGE_BYTES:
                    yield from self._drained(contents)
                count = 0
                while count < size and not records.is_taken:
                    count += stripe.take(records, memory[count:])
                yield from self._cut(records, memory[:count])
        yield from self._drained(contents)

    def _drained(self, contents: Sequence[_Content]) -> Iterator[Page]:
        """Pages of all copies in side buffers."""
        chunks = [chunk for stripe, records in contents for chunk in stripe.drain(records)]
        yield from self._cut(contents[0][1], *chunks)

    def _cut(self, records: FrozenRecords, *copies: F32) -> Iterator[Page]:
        """Pages of `copies`, each (n, words), some of them together if they fit."""
        size, shards, buckets = _page_size(records), self._shards, self.meta["buckets"]
        together: list[F32] = []
        for part in copies:
            if together and sum(map(len, together)) + len(part) > size:
                yield page_of(records.name, np.concatenate(together), shards, buckets)
                together = []
            together.append(part)
        if sum(map(len, together)):
            whole = together[0] if len(together) == 1 else np.concatenate(together)
            yield page_of(records.name, whole, shards, buckets)


class FrozenTwoParts:
    """A two-part table of `spec` (plain) at a freeze, with the interface of `FrozenRows`.

    `meta` are the facts of the short part, and as `long` those of the long part.
    """

    def __init__(self, spec: Meta, short: FrozenRows, long: FrozenRows) -> None:
        self.meta = short.meta | {"spec": spec, "long": long.meta}
        self._parts = short, long

    def __enter__(self) -> FrozenTwoParts:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_open(self) -> bool:
        return any(part.is_open for part in self._parts)

    @property
    def saved_rows(self) -> int:
        return sum(part.saved_rows for part in self._parts)

    @property
    def size_bytes(self) -> int:
        return sum(part.size_bytes for part in self._parts)

    @property
    def buffered_bytes(self) -> int:
        return sum(part.buffered_bytes for part in self._parts)

    def pages(self) -> Iterator[Page]:
        """Pages of the short part, then those of the long part; see `FrozenRows.pages`."""
        short, long = self._parts
        yield from short.pages()
        yield from map(long_page, long.pages())

    def confirm(self) -> None:
        for part in self._parts:
            part.confirm()

    def close(self) -> None:
        for part in self._parts:
            part.close()


def _page_size(records: FrozenRecords) -> int:
    return max(1, PAGE_BYTES // (4 * records.words))
