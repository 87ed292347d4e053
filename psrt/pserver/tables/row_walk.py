"""Walks over all rows of a sparse table, page by page, while requests change it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from psrt.core.types import F32, I64
from psrt.pserver.tables.stripe import Decide, Stripe

_STRIPE_SHIFT = 40  # a cursor is stripe << 40 | the number of its slots that are still to come


class _Position(NamedTuple):
    """The position of a walk: the rows of `stripe` before slot `end` come next."""

    stripe: int
    end: int


class RowWalk:
    """Pages of the rows of `stripes`, from cursor 0 on; a returned cursor of 0 is the end.

    A walk goes from the last slot of each stripe to its first. A dropped row makes the last row
    move into its slot, so rows only move to slots before their own, and no row evades the walk.
    """

    def __init__(self, stripes: Sequence[Stripe]) -> None:
        self._stripes = stripes

    def export(self, cursor: int, max_rows: int, width: int) -> tuple[I64, F32, int]:
        """A page of rows: ids (n,), weights (n, `width`), and the next cursor."""
        ids: list[I64] = [np.empty(0, np.int64)]
        weights: list[F32] = [np.empty((0, width), np.float32)]
        position = self._position(cursor)
        while max_rows > 0 and position is not None:
            page_ids, page, end = self._stripes[position.stripe].page(position.end, max_rows)
            ids.append(page_ids)
            weights.append(page)
            max_rows -= len(page_ids)
            position = self._next(position.stripe, end)
        return np.concatenate(ids), np.concatenate(weights), _cursor(position)

    def sweep(self, cursor: int, max_rows: int, decide: Decide) -> tuple[int, int]:
        """Drop the rows of a page that `decide` selects: their number, and the next cursor."""
        position = self._position(cursor)
        if position is None:
            return 0, 0
        dropped, end = self._stripes[position.stripe].sweep(position.end, max_rows, decide)
        return dropped, _cursor(self._next(position.stripe, end))

    def _position(self, cursor: int) -> _Position | None:
        if cursor == 0:
            return self._next(-1, 0)
        stripe, end = cursor >> _STRIPE_SHIFT, cursor & ((1 << _STRIPE_SHIFT) - 1)
        return self._next(stripe, end) if stripe < len(self._stripes) else None

    def _next(self, stripe: int, end: int) -> _Position | None:
        """The position with slots 0 to `end` of `stripe` to come; None at the end of the walk."""
        if end > 0:
            return _Position(stripe, end)
        for index in range(stripe + 1, len(self._stripes)):
            if rows := self._stripes[index].rows:
                return _Position(index, rows)
        return None


def _cursor(position: _Position | None) -> int:
    return 0 if position is None else position.stripe << _STRIPE_SHIFT | position.end
