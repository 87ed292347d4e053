"""Checks of pages that a table is restored from: what must be equal, and which delta follows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, NamedTuple, Protocol

import numpy as np

from psrt.core.errors import ErrorCode, TableError
from psrt.core.specs import DenseTableSpec, SparseTableSpec, TableSpec, to_plain
from psrt.kernels.tables import BUCKET_WORDS, RowLayout
from psrt.pserver.frozen.pages import FORMAT, Meta, Page, check_page, misfit

_SPARSE_FIELDS = ["width", "initializer", "optimizer", "seed", "virtual_shards", "padding_id"]
_SPARSE_FIELDS += ["admission", "growth", "storage"]
_DENSE_FIELDS = ["parameter", "shape", "optimizer"]


class FrozenPages(NamedTuple):
    """The facts and pages that one freeze has handed out."""

    meta: Meta
    pages: Iterable[Page]


class Restorable(Protocol):
    """A sparse table that is being restored."""

    @property
    def spec(self) -> SparseTableSpec: ...

    @property
    def restored_from(self) -> dict[int, Meta]:
        """The newest facts of each pserver it was restored from, by first virtual shard."""
        ...

    def put_facts(self, meta: Meta) -> None:
        """Go on from the version, time and counters of a freeze."""
        ...

    def put_page(self, page: Page) -> None:
        """Insert the records of a page that belong here."""
        ...


def restore(table: Restorable, sources: Iterable[FrozenPages]) -> None:
    """Put pages of `sources` into `table`; see `FreezableRows.restore`."""
    chain = dict(table.restored_from)  # of this call: others may restore other pages
    for meta, pages in sources:
        if belongs(table.spec, meta, chain):
            table.put_facts(meta)
            for page in pages:
                table.put_page(page)


def belongs(spec: SparseTableSpec, meta: Meta, chain: dict[int, Meta]) -> bool:
    """True if a freeze has virtual shards of `spec`; it becomes the newest of its `chain` then.

    `chain` has the facts restored before, by first virtual shard. Raises `TableError` for a freeze
    that does not fit.
    """
    check_spec(spec, meta)
    if not overlaps(spec, meta):
        return False
    first = meta["spec"]["first_shard"]
    check_follows(spec, meta, chain.get(first))
    chain[first] = meta
    return True


def overlaps(spec: SparseTableSpec, meta: Meta) -> bool:
    """True if a freeze has virtual shards of `spec`."""
    other = meta["spec"]
    return bool(other["first_shard"] < spec.last_shard and spec.first_shard < other["last_shard"])


def check_spec(spec: TableSpec, meta: Meta) -> None:
    """Raise `TableError` if a freeze is of a table that `spec` cannot continue.

    Rates, regularizers, scores and lifecycles may differ, if rows keep the same words.
    """
    if meta["format"] != FORMAT:
        raise misfit(spec.name, "format", meta["format"], FORMAT)
    wanted: dict[str, Any] = to_plain(spec)
    fields = _DENSE_FIELDS if isinstance(spec, DenseTableSpec) else _SPARSE_FIELDS
    for field in fields:
        got = meta["spec"].get(field)
        if got != wanted[field]:
            raise misfit(spec.name, field, got, wanted[field])


def check_layout(table: str, meta: Meta, layout: RowLayout) -> None:
    """Raise `TableError` if rows of a freeze have their words at other places."""
    for field, wanted in asdict(layout).items():
        got = meta["layout"].get(field)
        if got != wanted:
            raise misfit(table, f"{field} of rows", got, wanted)


def check_follows(spec: SparseTableSpec, meta: Meta, before: Meta | None) -> None:
    """Raise `TableError` for a delta that does not continue the freeze `before` it.

    It may have some changes that are in that freeze, too: then it has the whole rows as they are
    later.
    """
    got = None if before is None else before["version"]
    if meta["kind"] == "delta" and (got is None or not meta["since"] <= got <= meta["version"]):
        raise TableError(
            f"table {spec.name!r} cannot be restored: a delta continues version {meta['since']}, "
            f"but the pages before it are of version {got}.",
            code=ErrorCode.TABLE_SHAPE,
            hint="Restore a full freeze first, then its deltas in their order.",
        )


def name_of(spec: SparseTableSpec, page: Page, words: int) -> str:
    """The kind of records of a page; raises `TableError` if it does not fit rows of `words`."""
    kinds: dict[str, tuple[type[np.generic], int]] = {
        "rows": (np.float32, words),
        "waiting": (np.float32, 2 + BUCKET_WORDS),
        "deleted": (np.int64, 0),
    }
    for name, kind in kinds.items():
        if name in page:
            check_page(spec.name, page, name, *kind)
            return name
    raise misfit(spec.name, "a kind of records", sorted(page), f"one of {', '.join(kinds)}")
