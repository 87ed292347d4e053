"""A dense table at a freeze, and blocks made from parts of others.

Values and optimizer state are snapshots, which the table copies before its next update. Values that
trainers pulled, for delay compensation, are no part of a freeze: trainers pull again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from psrt.core.errors import TableError
from psrt.core.specs import DenseTableSpec
from psrt.core.types import F32
from psrt.pserver.frozen.frozen_stripe import ended
from psrt.pserver.frozen.pages import Meta, Page, misfit
from psrt.pserver.frozen.restoring import FrozenPages, check_spec


class BlockState(NamedTuple):
    """Values (n,), optimizer state (vectors, n), and the number of updates."""

    values: F32
    state: F32
    version: int


class FrozenBlock:
    """One freeze of a dense table, with the interface of `FrozenRows`.

    `meta` are the facts of the table at the freeze. `confirmed` gets them with `confirm`; `closed`
    is called once the snapshots are dropped.
    """

    def __init__(
        self,
        meta: Meta,
        block: BlockState,
        confirmed: Callable[[Meta], None],
        closed: Callable[[], None],
    ) -> None:
        self.meta = meta
        self._block: BlockState | None = block
        self._confirmed, self._closed = confirmed, closed

    def __enter__(self) -> FrozenBlock:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_open(self) -> bool:
        return self._block is not None

    @property
    def size_bytes(self) -> int:
        """About the bytes of its page."""
        block = self._block
        return 0 if block is None else block.values.nbytes + block.state.nbytes

    @property
    def buffered_bytes(self) -> int:
        """Copies that wait: none, as snapshots are made at once."""
        return 0

    def pages(self) -> Iterator[Page]:
        """One page of the whole block; none in a delta if it has not changed."""
        if self._block is None:
            raise ended()
        if self.meta["version"] != self.meta["since"]:
            yield {"values": self._block.values, "state": self._block.state}

    def confirm(self) -> None:
        """Record that what this freeze hands out is safe: the next delta begins at it."""
        self._confirmed(self.meta)

    def close(self) -> None:
        """End the freeze; pages that were handed out stay valid."""
        if self._block is not None:
            self._block = None
            self._closed()


class _Part(NamedTuple):
    """Elements `first` to `end` − 1 of a parameter."""

    first: int
    end: int
    version: int
    page: Page


def assembled(spec: DenseTableSpec, vectors: int, sources: Iterable[FrozenPages]) -> BlockState:
    """The block of `spec` from freezes of blocks of its parameter; later ones replace earlier.

    The blocks may have other bounds. The version is the highest: a trainer that is killed leaves
    its last push on some pservers only, so blocks of a cut may differ by it. Raises `TableError` if
    a block does not fit, or an element is in none.
    """
    parts = _parts(spec, vectors, sources)
    first, end = spec.offset, spec.offset + spec.size
    inner = {bound for part in parts for bound in part[:2] if first < bound < end}
    values, state = np.empty(spec.size, np.float32), np.empty((vectors, spec.size), np.float32)
    versions = set()
    for start, stop in pairwise(sorted({first, *inner, end})):
        part = _covering(spec, parts, start, stop)
        here, there = (
            slice(start - first, stop - first),
            slice(start - part.first, stop - part.first),
        )
        values[here], state[:, here] = part.page["values"][there], part.page["state"][:, there]
        versions.add(part.version)
    return BlockState(values, state, max(versions, default=0))


def check_covered(spec: DenseTableSpec, metas: Iterable[Meta]) -> None:
    """Raise `TableError` if freezes do not fit `spec`, or an element is in none of their blocks."""
    bounds = []
    for meta in metas:
        check_spec(spec, meta)
        bounds.append((meta["spec"]["offset"], meta["spec"]["offset"] + meta["spec"]["size"]))
    end, last = spec.offset, spec.offset + spec.size
    for first, stop in sorted(bounds):
        if first <= end:
            end = max(end, stop)
    if end < last:
        raise _missing(spec, end, last)


def _parts(spec: DenseTableSpec, vectors: int, sources: Iterable[FrozenPages]) -> list[_Part]:
    """The blocks that share elements with `spec`, newest first."""
    parts: list[_Part] = []
    for meta, pages in sources:
        check_spec(spec, meta)
        first, size = meta["spec"]["offset"], meta["spec"]["size"]
        if first < spec.offset + spec.size and spec.offset < first + size:
            for page in pages:
                _check(spec, page, size, vectors)
                parts.insert(0, _Part(first, first + size, meta["version"], page))
    return parts


def _check(spec: DenseTableSpec, page: Page, size: int, vectors: int) -> None:
    for name, shape in (("values", (size,)), ("state", (vectors, size))):
        found = page.get(name)
        if found is None or found.dtype != np.float32 or found.shape != shape:
            got = "missing" if found is None else f"{found.dtype} of shape {found.shape}"
            raise misfit(spec.name, name, got, f"float32 of shape {shape}")


def _covering(spec: DenseTableSpec, parts: list[_Part], start: int, stop: int) -> _Part:
    """The newest part with elements `start` to `stop` − 1."""
    for part in parts:
        if part.first <= start and stop <= part.end:
            return part
    raise _missing(spec, start, stop)


def _missing(spec: DenseTableSpec, start: int, stop: int) -> TableError:
    return misfit(spec.name, f"elements {start} to {stop - 1}", "missing", "a block that has them")
