"""Local cuts as they travel to a backup: pieces with arrays, and facts that name them.

The last piece has the decisions of that instant, so that rows and push keys fit each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from psrt.core.types import Array
from psrt.pserver.checkpoints import LocalCut
from psrt.pserver.decisions import DurablePoint
from psrt.pserver.frozen import Meta, Page

PIECE_BYTES = 4 << 20


class TablePage(NamedTuple):
    """A page of one table, and the facts of its freeze; without arrays these alone count."""

    table: str
    meta: Meta
    page: Page


class TickPiece(NamedTuple):
    """A piece of a tick; `facts` is JSON."""

    facts: str
    arrays: list[Array]
    is_last: bool


def pieces_of(cut: LocalCut[DurablePoint]) -> Iterator[TickPiece]:
    """A local cut in pieces of about `PIECE_BYTES`; the last has the facts of the cut.

    The first of a full one has them, too: tables are made by them.
    """
    pages: list[TablePage] = []
    size_bytes, begins = 0, cut.facts if cut.is_full else None
    for page in _pages_of(cut):
        if size_bytes >= PIECE_BYTES:
            yield _piece(pages, begins)
            pages, size_bytes, begins = [], 0, None
        pages.append(page)
        size_bytes += sum(array.nbytes for array in page.page.values())
    yield _piece(pages, begins, cut.facts)


def pages_of(facts: dict[str, Any], arrays: Sequence[Array]) -> list[TablePage]:
    """The pages of a piece that has arrived, in copies: its memory belongs to a connection."""
    rest = iter(arrays)
    return [
        TablePage(table, facts["metas"][table], {name: next(rest).copy() for name in names})
        for table, names in facts["pages"]
    ]


def _piece(pages: Sequence[TablePage], begins: Any, of_cut: Any = None) -> TickPiece:
    facts: dict[str, Any] = {
        "pages": [[each.table, list(each.page)] for each in pages],
        "metas": {each.table: each.meta for each in pages},
    }
    facts |= {"begins": begins} if begins else {}
    facts |= {"cut": of_cut} if of_cut else {}
    arrays = [np.ascontiguousarray(array) for each in pages for array in each.page.values()]
    return TickPiece(json.dumps(facts), arrays, of_cut is not None)


def _pages_of(cut: LocalCut[DurablePoint]) -> Iterator[TablePage]:
    for frozen in cut.tables:
        meta, is_empty = frozen.meta, True
        for page in frozen.pages():
            is_empty = False
            yield TablePage(meta["table"], meta, page)
        if is_empty and meta["version"] != meta["since"]:
            yield TablePage(meta["table"], meta, {})
