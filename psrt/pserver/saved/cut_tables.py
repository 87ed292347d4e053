"""A sparse table of a cut, walked by virtual shard in bounded memory, from all parts at once.

A first pass reads the headers of the pages and the places of their virtual shards. Each step then
reads the rows of some consecutive shards from all pages that have them: the newest row of an id
wins, and dropped ids are left out, so a step returns each id once, ids in rising order. Chunks at
the bounds of shards are read by several steps; where rows are in one page only, pages are the
steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from psrt.core.specs import SparseTableSpec, from_plain, without_show_scale
from psrt.core.types import F32, I32, I64, U8
from psrt.kernels.optimizers import rule_of
from psrt.pserver.checkpoints import SavedCut, StoredPages
from psrt.pserver.frozen import Meta, ids_of
from psrt.pserver.saved.row_parts import RowPart, SavedRows, decoded, layout_of
from psrt.storage.array_reader import ArrayFileReader

GROUP_BYTES = 64 << 20
"""Rows of one step; a step has one virtual shard at least."""

_KINDS = {"rows": True, "deleted": False}
_LONG_KINDS = {"long_rows": True, "long_deleted": False}
"""Arrays of pages, and whether their records are rows; the others are ids of dropped rows."""


class _IndexedPage(NamedTuple):
    """A page of records: those of `shards[i]` are `starts[i]` to `starts[i + 1]` − 1."""

    reader: ArrayFileReader
    number: int
    name: str
    words: int  # 0 = ids, for deleted rows
    shards: I32
    starts: I64

    def of(self, first_shard: int, last_shard: int) -> tuple[int, int]:
        """First record and last + 1 of some virtual shards."""
        low, high = np.searchsorted(self.shards, [first_shard, last_shard])
        return int(self.starts[low]), int(self.starts[high])


class CutTable:
    """One sparse table of a cut, over all of its parts; `spec` is that of the whole table."""

    def __init__(self, cut: SavedCut, stored: Sequence[StoredPages]) -> None:
        self._cut, self._stored = cut, stored
        spec: SparseTableSpec = from_plain(stored[-1].facts["spec"])
        self.spec = replace(spec, first_shard=0, last_shard=spec.virtual_shards)
        self.has_state = True

    @property
    def progress(self) -> dict[str, Any]:
        """Version and time of the latest update, as facts of a freeze; `long` has those of the long
        part of a table that grows."""
        facts = [stored.facts for stored in self._stored]
        newest = _newest_of(facts)
        if self.spec.growth is None:
            return newest
        return newest | {"long": _newest_of([each["long"] for each in facts])}

    @property
    def size_bytes(self) -> int:
        """Bytes of the files that hold the table."""
        return sum(each.file["seal"]["bytes"] for each in self._stored)

    @property
    def state_words(self) -> tuple[int, ...]:
        """Words of optimizer state of a row, or of its short and its long part."""
        spec = self.spec
        if spec.growth is None:
            return (len(rule_of(spec.optimizer).first_state(spec.width)),)
        short, long = spec.growth.embed_width, spec.width - spec.growth.embed_width
        rule = rule_of(without_show_scale(spec.optimizer))
        return len(rule_of(spec.optimizer).first_state(short)), len(rule.first_state(long))

    def groups(
        self, first_shard: int, last_shard: int, group_bytes: int = GROUP_BYTES
    ) -> Iterator[SavedRows]:
        """The rows of virtual shards `first_shard` to `last_shard` − 1, each id once.

        If no row can be in two pages, a step is a page, and every byte is read once; else a step is
        some virtual shards. Raises `StorageError` naming the file that is damaged or missing.
        """
        with self.walk(first_shard, last_shard) as walk:
            if self._has_each_row_once:
                yield from walk.pages(first_shard, last_shard)
                return
            for first, last in steps(walk.sizes, first_shard, last_shard, group_bytes):
                yield walk.rows(first, last)

    @property
    def _has_each_row_once(self) -> bool:
        kinds = {stored.facts["kind"] for stored in self._stored}
        return self.spec.growth is None and kinds == {"full"}

    @contextmanager
    def walk(self, first_shard: int, last_shard: int) -> Iterator[TableWalk]:
        """Open the files that have these virtual shards, and find the places of their rows."""
        with ExitStack() as files:
            pages = list(self._pages(files, first_shard, last_shard))
            yield TableWalk(self, self._stored[-1].facts, pages)

    def _pages(self, files: ExitStack, first: int, last: int) -> Iterator[_IndexedPage]:
        for stored in self._stored:
            spec = stored.facts["spec"]
            if spec["first_shard"] < last and first < spec["last_shard"]:
                reader = files.enter_context(self._cut.opened(stored.file))
                for number in stored.numbers:
                    yield from _indexed(reader, number)


class TableWalk:
    """Rows of a table by ranges of virtual shards; `sizes` are the bytes of each shard."""

    def __init__(self, table: CutTable, facts: Meta, pages: Sequence[_IndexedPage]) -> None:
        self._table, self._facts, self._pages = table, facts, pages
        self.sizes: I64 = np.zeros(table.spec.virtual_shards, np.int64)
        for page in pages:
            self.sizes[page.shards] += np.diff(page.starts) * max(4 * page.words, 8)

    def pages(self, first: int, last: int) -> Iterator[SavedRows]:
        """The rows of virtual shards `first` to `last` − 1 of one page after the other."""
        layout, words = layout_of(self._facts), self._table.state_words[0]
        for page in self._pages:
            start, end = page.of(first, last)
            if end > start:
                yield SavedRows(decoded(_records(page, start, end), layout, words))

    def rows(self, first: int, last: int) -> SavedRows:
        """The rows of virtual shards `first` to `last` − 1, ids in rising order."""
        facts, words = self._facts, self._table.state_words
        rows = _newest(self._pages, _KINDS, first, last, facts, words[0])
        if self._table.spec.growth is None:
            return SavedRows(rows)
        long = _newest(self._pages, _LONG_KINDS, first, last, facts["long"], words[1])
        return SavedRows(rows, long)


def steps(
    sizes: I64, first: int, last: int, group_bytes: int = GROUP_BYTES
) -> Iterator[tuple[int, int]]:
    """Runs of consecutive virtual shards from `first` to `last` − 1, of about `group_bytes` each.

    `sizes` (shards,) are their bytes. Yields nothing if they are all empty.
    """
    begin, size = first, 0
    for shard in range(first, last):
        if size and size + sizes[shard] > group_bytes:
            yield begin, shard
            begin, size = shard, 0
        size += int(sizes[shard])
    if size:
        yield begin, last


def _newest_of(facts: Sequence[Meta]) -> dict[str, Any]:
    return {name: max(each[name] for each in facts) for name in ("version", "time")}


def _indexed(reader: ArrayFileReader, number: int) -> Iterator[_IndexedPage]:
    """A page of rows or of dropped ids; nothing for ids that wait for admission."""
    shapes = reader.shapes(number)
    for name in (*_KINDS, *_LONG_KINDS):
        if name in shapes:
            shape, count = shapes[name], shapes["shards"][0]
            shards = reader.elements(number, "shards", 0, count)
            starts = reader.elements(number, "starts", 0, count + 1)
            words = shape[1] if len(shape) > 1 else 0
            yield _IndexedPage(reader, number, name, words, shards, starts)


def _newest(
    pages: Sequence[_IndexedPage],
    kinds: dict[str, bool],
    first: int,
    last: int,
    facts: Meta,
    state_words: int,
) -> RowPart:
    """The newest row of each id of some virtual shards, decoded, ids in rising order."""
    layout = layout_of(facts)
    ids: list[I64] = [np.empty(0, np.int64)]
    rows: list[F32] = [np.empty((0, layout.words), np.float32)]
    are_rows: list[U8] = [np.empty(0, np.uint8)]
    for page in pages:
        if page.name in kinds:
            start, end = page.of(first, last)
            if end > start:
                found = _records(page, start, end)
                are_rows.append(np.full(end - start, kinds[page.name], np.uint8))
                ids.append(ids_of(found) if page.words else found)
                rows += [found] if page.words else []
    chosen = _latest(np.concatenate(ids), np.concatenate(are_rows))
    return decoded(np.concatenate(rows)[chosen], layout, state_words)


def _records(page: _IndexedPage, start: int, end: int) -> Any:
    """Rows (n, words) or ids (n,), in memory of their own."""
    if not page.words:
        return page.reader.elements(page.number, page.name, start, end).copy()
    flat = page.reader.elements(page.number, page.name, start * page.words, end * page.words)
    return flat.reshape(-1, page.words).copy()


def _latest(ids: I64, are_rows: U8) -> I64:
    """Of records in their order, some of which drop an id: the places among the rows of the latest
    row of each id that is not dropped afterwards."""
    order = np.argsort(ids, kind="stable")
    in_order = ids[order]
    is_last = np.ones(len(ids), bool)
    is_last[:-1] = in_order[1:] != in_order[:-1]
    latest = order[is_last]
    places = np.cumsum(are_rows, dtype=np.int64) - 1
    chosen: I64 = places[latest[are_rows[latest] != 0]]
    return chosen
