"""Pieces of any number of examples, joined into batches of one size.

Parsers that read a block or a row group at a time feed its examples to a `Rebatcher`. A batch
within a piece is a window on it; only a batch that spans pieces is copied.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from psrt.core.tensors import Ragged
from psrt.core.types import Array
from psrt.data.checks import batch_size_of
from psrt.data.slots import Batch, batch_rows, ends_of


class Rebatcher:
    """Belongs to one thread; pieces must not be written after they were fed.

    `held` examples wait for their batch to fill; the next `skipping` will be dropped.
    """

    def __init__(self, batch_size: int) -> None:
        self._batch_size = batch_size_of(batch_size)
        self._pieces: list[Batch] = []
        self.held = 0
        self.skipping = 0

    def skip(self, examples: int) -> None:
        """Drop the next `examples` examples that are fed."""
        self.skipping += examples

    def feed(self, piece: Batch) -> Iterator[Batch]:
        """Yield each batch that fills."""
        rows = batch_rows(piece)
        at = min(self.skipping, rows)
        self.skipping -= at
        while rows - at >= (wanted := self._batch_size - self.held):
            self._hold(window(piece, at, at + wanted))
            at += wanted
            yield self._take()
        if at < rows:
            self._hold(window(piece, at, rows))

    def finish(self) -> Batch | None:
        """Return the last, smaller batch, if any examples are left."""
        return self._take() if self._pieces else None

    def _hold(self, piece: Batch) -> None:
        self._pieces.append(piece)
        self.held += batch_rows(piece)

    def _take(self) -> Batch:
        pieces, self._pieces, self.held = self._pieces, [], 0
        return joined(pieces)


class RebatchingParser:
    """Base of parsers that read a block at a time into pieces."""

    def __init__(self, batch_size: int) -> None:
        self._rebatcher = Rebatcher(batch_size)

    @property
    def held(self) -> int:
        return self._rebatcher.held

    @property
    def skipping(self) -> int:
        return self._rebatcher.skipping

    def skip(self, examples: int) -> None:
        """Drop the next `examples` examples."""
        self._rebatcher.skip(examples)

    def finish(self) -> Batch | None:
        """Return the last, smaller batch, if any examples are left."""
        return self._rebatcher.finish()


def window(batch: Batch, start: int, stop: int) -> Batch:
    """Return examples `start` to `stop`, without a copy of their values."""
    return {name: _window(fed, start, stop) for name, fed in batch.items()}


def joined(pieces: list[Batch]) -> Batch:
    """Return the examples of all pieces, in order."""
    if len(pieces) == 1:
        return pieces[0]
    return {name: _joined([piece[name] for piece in pieces]) for name in pieces[0]}


def _window(fed: Array | Ragged, start: int, stop: int) -> Array | Ragged:
    if not isinstance(fed, Ragged):
        return fed[start:stop]
    offsets = fed.offsets[start : stop + 1]
    return Ragged(fed.values[offsets[0] : offsets[-1]], offsets - offsets[0])


def _joined(parts: list[Array | Ragged]) -> Array | Ragged:
    ragged = [part for part in parts if isinstance(part, Ragged)]
    if not ragged:
        return np.concatenate([part for part in parts if not isinstance(part, Ragged)])
    lengths = np.concatenate([np.diff(part.offsets) for part in ragged])
    return Ragged(np.concatenate([part.values for part in ragged]), ends_of(lengths))
