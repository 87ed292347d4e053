"""A sparse table whose rows start short: two tables with the interface of one.

The *short part* holds the first `embed_width` weights of every row, with its shows and clicks. The
*long part* holds the others for ids whose score has reached the threshold; for all other ids they
read as zeros. A row that has grown stays long while it exists; dropping its short part drops both.
The parts are `SparseTable`s of one id space and of equal stripes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from psrt.core.clock import hours_since_1970
from psrt.core.specs import SparseTableSpec, scales_by_shows, to_plain, without_show_scale
from psrt.core.types import F32, I64, U8
from psrt.kernels.lowlevel import stable_hash
from psrt.kernels.optimizers import per_show
from psrt.kernels.tables import CONSTANT, ID_WORD, RowLayout
from psrt.pserver.frozen import (
    CUTS,
    FrozenPages,
    FrozenTwoParts,
    Meta,
    Page,
    UpdateGate,
    restore,
    split_page,
)
from psrt.pserver.tables.admission import Grown
from psrt.pserver.tables.helper_threads import NO_HELPERS, HelperThreads
from psrt.pserver.tables.slab_preallocator import SlabPreallocator
from psrt.pserver.tables.sparse_table import SparseTable
from psrt.pserver.tables.stripe import Decide, Stripe, first_row
from psrt.pserver.tables.stripe_router import RoutedIds

_ZEROS = (CONSTANT, 0.0, 0.0, 0)


class LongPart(SparseTable):
    """Rows of ids whose score reaches `threshold`; `apply` gets the scores in place of shows."""

    def __init__(
        self,
        spec: SparseTableSpec,
        stripes: int,
        threshold: float,
        preallocator: SlabPreallocator | None,
        helpers: HelperThreads,
    ) -> None:
        self._threshold = threshold
        super().__init__(spec, stripes, preallocator=preallocator, helpers=helpers)

    def _stripe(self, first_shard: int, last_shard: int) -> Stripe:
        begins = first_row(self.spec, self._rule)
        grown = Grown(self._threshold)
        return Stripe(self.layout, *begins, grown, absent=_ZEROS, preallocator=self._preallocator)


class TwoPartTable:
    """A table with the methods of `SparseTable`; `spec.growth` is set."""

    def __init__(
        self,
        spec: SparseTableSpec,
        stripes: int,
        hours: Callable[[], int] = hours_since_1970,
        preallocator: SlabPreallocator | None = None,
        helpers: HelperThreads = NO_HELPERS,
    ) -> None:
        assert spec.growth is not None, spec.name
        self.spec = spec
        self._updates = UpdateGate()
        self._embed = spec.growth.embed_width
        threshold, short = spec.growth.embedx_threshold, replace(spec, width=self._embed)
        self._short = SparseTable(short, stripes, None, hours, preallocator, helpers)
        self._long = LongPart(_long_spec(spec), stripes, threshold, preallocator, helpers)

    @property
    def layout(self) -> RowLayout:
        """The layout of the short part, which sweeps read."""
        return self._short.layout

    @property
    def parts(self) -> tuple[SparseTable, ...]:
        """The short and the long part."""
        return self._short, self._long

    @property
    def version(self) -> int:
        return self._short.version

    @property
    def rows(self) -> int:
        return self._short.rows

    @property
    def nbytes(self) -> int:
        return self._short.nbytes + self._long.nbytes

    @property
    def empty_bytes(self) -> int:
        return self._short.empty_bytes + self._long.empty_bytes

    @property
    def refused(self) -> int:
        return self._short.refused

    @property
    def change_log(self) -> None:
        return None

    @property
    def logged_to(self) -> int:
        return 0

    def describe(self) -> dict[str, Any]:
        """Facts for STATUS."""
        facts = {"width": self.spec.width, "grown_rows": self._long.rows}
        return {**self._short.describe(), **facts}

    def time(self, now: int) -> int:
        return self._short.time(now)

    def route(self, ids: I64) -> RoutedIds:
        return self._short.route(ids)

    def read(self, routed: RoutedIds, out: F32) -> int:
        """Write weights to `out` (n, width), zeros if rows have not grown; return the version."""
        short = np.empty((len(out), self._embed), np.float32)
        long = np.empty((len(out), self.spec.width - self._embed), np.float32)
        version = self._short.read(routed, short)
        self._long.read(routed.elsewhere(), long)
        out[:, : self._embed], out[:, self._embed :] = short, long
        return version

    def apply(
        self,
        routed: RoutedIds,
        gradients: F32,
        rate: float,
        counts: F32 | None = None,
        now: int = 0,
    ) -> None:
        """Make one update by `gradients` (n, width) of the short parts, and of the long parts of
        rows that have grown or grow with these `counts`."""
        if counts is not None and scales_by_shows(self.spec.optimizer):
            long_gradients = per_show(gradients[:, self._embed :], counts)
        else:
            long_gradients = np.ascontiguousarray(gradients[:, self._embed :])
        short_gradients = np.ascontiguousarray(gradients[:, : self._embed])
        with self._updates:  # a freeze has both parts of an update or none
            self._short.apply(routed, short_gradients, rate, counts, now)
            scores = np.full((len(routed.ids), 2), -np.inf, np.float32)
            scores[:, 0] = self.scores(routed)
            self._long.apply(routed.elsewhere(), long_gradients, rate, scores)

    def scores(self, routed: RoutedIds) -> F32:
        """Scores (n,) of the rows; −∞ for an absent one."""
        scores = np.full(len(routed.ids), -np.inf, np.float32)
        self._short.read_scores(routed, scores)
        return scores

    def log(self, trainer: int, routed: RoutedIds) -> None:
        """Do nothing: no mode that logs changes has growing tables."""

    def changed(self, trainer: int, position: int) -> tuple[I64, int]:
        raise AssertionError("the table has no log")

    def release(self, trainer: int) -> None:
        """Do nothing: the table keeps nothing for a trainer."""

    def export(self, cursor: int, max_rows: int) -> tuple[I64, F32, int]:
        """A page of the rows; see `SparseTable.export`."""
        ids, _, cursor = self._short.export(cursor, max_rows)
        rows = np.empty((len(ids), self.spec.width), np.float32)
        self.read(self.route(ids), rows)
        return ids, rows, cursor

    def sweep(self, cursor: int, max_rows: int, decide: Decide) -> tuple[int, int]:
        """Drop rows of a page; see `SparseTable.sweep`. `decide` gets short parts and drops both.

        A push between the two drops may update the long part of a dropped row; it is dropped too.
        """
        gone: list[I64] = []

        def decide_both(rows: F32) -> U8:
            dropped = decide(rows)
            gone.append(rows.view(np.int64)[dropped != 0, ID_WORD // 2].copy())
            return dropped

        with self._updates:
            dropped, cursor = self._short.sweep(cursor, max_rows, decide_both)
            for ids in gone:
                if len(ids):
                    self._long.drop(ids)
        return dropped, cursor

    def track_changes(self, consumer: str = CUTS) -> None:
        """Record from now on which rows change; see `SparseTable.track_changes`."""
        with self._updates.shut():
            self._short.track_changes(consumer)
            self._long.track_changes(consumer)

    def freeze(self, is_delta: bool = False, consumer: str = CUTS) -> FrozenTwoParts:
        """Fix the present state of both parts; see `SparseTable.freeze`."""
        with self._updates.shut():
            short = self._short.freeze(is_delta, consumer)
            long = self._long.freeze(is_delta, consumer)
            return FrozenTwoParts(to_plain(self.spec), short, long)

    def restore(self, sources: Iterable[FrozenPages]) -> None:
        """Fill the table from freezes; see `SparseTable.restore`."""
        restore(self, sources)

    @property
    def restored_from(self) -> dict[int, Meta]:
        return self._short.restored_from

    def put_facts(self, meta: Meta) -> None:
        self._short.put_facts(meta)
        self._long.put_facts(meta["long"])

    def put_page(self, page: Page) -> None:
        short, long = split_page(page)
        if short:
            self._short.put_page(short)
        if long:
            self._long.put_page(long)


RowsTable: TypeAlias = SparseTable | TwoPartTable


def _long_spec(spec: SparseTableSpec) -> SparseTableSpec:
    """The spec of the long part: without show scale, admission and lifecycle of its own."""
    assert spec.growth is not None
    return replace(
        spec,
        width=spec.width - spec.growth.embed_width,
        seed=stable_hash(f"{spec.seed}/embedx"),
        optimizer=without_show_scale(spec.optimizer),
        admission=None,
        lifecycle=None,
        growth=None,
    )
