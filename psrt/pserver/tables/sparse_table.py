"""The rows of a sparse table on one pserver, by id, over a few stripes.

Called from any handler thread. A batch is grouped by stripe once (`route`), then costs one kernel
call per stripe, under the lock of that stripe only, so trainers proceed in parallel. Idle helper
threads take stripes of a large batch. Reading never creates a row: the value of a row that was
never updated is a function of the spec and its id. `route` refuses a batch with ids of other
pservers before anything is changed. With a change log, which Geo needs, each trainer can ask for
the rows that others have pushed.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from psrt.core.clock import hours_since_1970
from psrt.core.specs import SparseTableSpec, scales_by_shows
from psrt.core.types import F32, I64
from psrt.kernels.optimizers import decay_of, per_show, rule_of
from psrt.kernels.tables import ONE_SHOW_EACH, RowUpdate, table_layout
from psrt.pserver.frozen import FreezableRows, Meta
from psrt.pserver.tables.admission import admission_of
from psrt.pserver.tables.change_log import ChangeLog
from psrt.pserver.tables.helper_threads import NO_HELPERS, HelperThreads
from psrt.pserver.tables.hot_ids import HotIds
from psrt.pserver.tables.row_walk import RowWalk
from psrt.pserver.tables.slab_preallocator import SlabPreallocator
from psrt.pserver.tables.stripe import Decide, Stripe, first_row
from psrt.pserver.tables.stripe_router import RoutedIds, StripeRouter

LARGE_ROWS = 12_288
"""Rows of a batch from which a second thread pays off: to wake it, and to be woken by it, takes
0.1 ms each, and both wait longer for memory. With 8,192 rows of 16 weights there is no gain."""


class SparseTable(FreezableRows):
    """Rows that exist once they were updated; `version` counts the updates.

    `log` has a lock of its own; None = no change log. `hours` is the time since 1970, for rows that
    store the hour of their latest push. `preallocator` allocates memory ahead of new rows;
    `helpers` take stripes of large batches.
    """

    _stripes: list[Stripe]

    def __init__(
        self,
        spec: SparseTableSpec,
        stripes: int,
        log: ChangeLog | None = None,
        hours: Callable[[], int] = hours_since_1970,
        preallocator: SlabPreallocator | None = None,
        helpers: HelperThreads = NO_HELPERS,
    ) -> None:
        super().__init__()
        self.spec = spec
        self._hours = hours
        self._preallocator = preallocator
        self._helpers = helpers
        self.version = 0
        self._time = 0  # of the latest update
        self.change_log = log
        self._log_lock = threading.Lock()
        self._rule = rule_of(spec.optimizer)
        self._decay = decay_of(spec.regularizer)
        self.layout = table_layout(spec, len(self._rule.first_state(spec.width)))
        router = StripeRouter(spec, stripes)
        self.route = router.route  # bound once: small pulls are dominated by calls
        self._stripes = [self._stripe(*shards) for shards in router.shards]
        self._shards = router.shards
        self._walk = RowWalk(self._stripes)
        self._version_lock, self._turns = threading.Lock(), itertools.count()
        self._hot_ids = HotIds()

    @property
    def parts(self) -> tuple[SparseTable, ...]:
        """The table itself; one that grows has two."""
        return (self,)

    @property
    def rows(self) -> int:
        return sum(stripe.rows for stripe in self._stripes)

    @property
    def nbytes(self) -> int:
        """Rows, optimizer state and indices."""
        return sum(stripe.nbytes for stripe in self._stripes)

    @property
    def empty_bytes(self) -> int:
        """The value of `nbytes` without rows."""
        return sum(stripe.empty_bytes for stripe in self._stripes)

    @property
    def waiting_bytes(self) -> int:
        """Memory reserved for ids that wait for admission, used or not; not in `nbytes`."""
        return sum(stripe.waiting_bytes for stripe in self._stripes)

    @property
    def refused(self) -> int:
        """Updates of ids that were not admitted."""
        return self._refused_before() + sum(stripe.refused for stripe in self._stripes)

    def describe(self) -> dict[str, Any]:
        """Facts for STATUS.

        `load` is the fraction of index cells in use; ids pulled most are those of `HotIds`.
        """
        cells = sum(stripe.cells for stripe in self._stripes)
        return {
            "rows": self.rows,
            "width": self.spec.width,
            "storage": self.spec.storage,
            "load": round(self.rows / cells, 3),
            "logged_ids": self.logged_ids,
            "refused": self.refused,
            "waiting_bytes": self.waiting_bytes,
            **self._hot_ids.describe(),
            "stripes": [[*at, s.rows] for at, s in zip(self._shards, self._stripes, strict=True)],
        }

    def time(self, now: int) -> int:
        """The time that the age of rows counts from when the job is at `now`.

        `now` counts rounds or mini-batches, so time is equal on all pservers of a table, even on
        those without pushes. If updates move all rows, it is the version: these updates go to all
        pservers and mark the rows they have touched by it.
        """
        return self.version if self._rule.moves_all_rows else max(self._time, now)

    def read(self, routed: RoutedIds, out: F32) -> int:
        """Write weights to `out` (n, width), zeros for the padding id; return the version read."""
        version = self.version
        self._hot_ids.count(routed.ids)
        touched = filter(routed.touches, self._in_turn())
        if len(routed.ids) >= LARGE_ROWS:
            self._helpers.run([partial(self._read, index, routed, out) for index in touched])
        else:
            for index in touched:
                self._read(index, routed, out)
        if self.spec.padding_id is not None:
            out[routed.of(len(self._stripes))] = 0.0
        return version

    def apply(
        self,
        routed: RoutedIds,
        gradients: F32,
        rate: float,
        counts: F32 | None = None,
        now: int = 0,
    ) -> None:
        """Make one update by `gradients` (n, width); creates rows, skips the padding id.

        Pushed rows decay by the regularizer of the table; the others do not, even if the optimizer
        moves all. An id that occurs twice is updated twice, in order, but both updates are counted
        before the first is made (bias correction of Adam). Ids that are not admitted are skipped.
        `counts` (n, 2) are the shows and clicks of the ids, by default one show each. `now` is the
        round or mini-batch that the job reaches by this update, by default the last one plus 1.
        """
        if counts is not None and scales_by_shows(self.spec.optimizer):
            gradients = per_show(gradients, counts)
        with self._updates:  # a freeze has an update as a whole or not at all
            version = self._next_version(now)
            decayed = None if self._decay is None else np.empty_like(gradients)
            update = RowUpdate(
                *(self._rule, routed.ids, gradients, version, rate, self._decay, decayed),
                hour=self._hours() if self.spec.keeps_seen else 0,
                counts=ONE_SHOW_EACH if counts is None else counts,
            )
            self._make(update, routed)

    def _next_version(self, now: int) -> int:
        """Count an update; returns the version that rows get."""
        with self._version_lock:
            self.version += 1
            self._time = max(self._time + 1, now)
            return self.version if self._rule.moves_all_rows else self._time

    def _make(self, update: RowUpdate, routed: RoutedIds) -> None:
        to_all = self._rule.moves_all_rows
        moved = self._in_turn() if to_all else filter(routed.touches, self._in_turn())
        if len(routed.ids) >= LARGE_ROWS or (to_all and self.rows >= LARGE_ROWS):
            self._helpers.run([partial(self._apply, index, routed, update) for index in moved])
        else:
            for index in moved:
                self._apply(index, routed, update)

    def missing(self, routed: RoutedIds) -> int:
        """The number of these ids that have no row; changes the slots of `routed`."""
        given = ((stripe, routed.of(i), routed.found(i)) for i, stripe in enumerate(self._stripes))
        return sum(stripe.missing(routed.ids, order, found) for stripe, order, found in given)

    def put_facts(self, meta: Meta) -> None:
        super().put_facts(meta)
        if self.change_log is not None:
            with self._log_lock:
                self.change_log.restart(meta["logged_to"])

    @property
    def logged_ids(self) -> int:
        """The number of ids in the log, repeated ones included."""
        return len(self.change_log) if self.change_log is not None else 0

    @property
    def logged_to(self) -> int:
        """The position up to which changes are logged; it grows until the table is restored."""
        return self.change_log.end if self.change_log is not None else 0

    def log(self, trainer: int, routed: RoutedIds) -> None:
        """Record that `trainer` has pushed these rows.

        Called after they are applied: who reads a row because of the log must get the change.
        """
        if self.change_log is None:
            return
        padding = self.spec.padding_id
        ids = routed.ids if padding is None else routed.ids[routed.ids != padding]
        with self._log_lock:
            self.change_log.add(trainer, ids)

    def changed(self, trainer: int, position: int) -> tuple[I64, int]:
        """The ids (n,) of rows that others than `trainer` have pushed since `position`.

        Returns them with the position to ask from next. If `position` is 0 or too old, they are the
        ids of all rows.
        """
        assert self.change_log is not None, "the table has no log"
        with self._log_lock:
            ids, end = self.change_log.since(trainer, position), self.change_log.end
        if ids is None:
            ids = np.concatenate([stripe.ids() for stripe in self._stripes])
        return ids, end

    def release(self, trainer: int) -> None:
        """Drop the log entries kept for `trainer`, which has completed."""
        if self.change_log is not None:
            with self._log_lock:
                self.change_log.release(trainer)

    def export(self, cursor: int, max_rows: int) -> tuple[I64, F32, int]:
        """A page of the rows: ids (n,), weights (n, width), and the next cursor (0 = the end).

        Begins at cursor 0. A row that exists all the time comes once, and again each time that rows
        are dropped and it moves. Rows created meanwhile may be missing.
        """
        return self._walk.export(cursor, max_rows, self.spec.width)

    def sweep(self, cursor: int, max_rows: int, decide: Decide) -> tuple[int, int]:
        """Drop rows of a page that `decide` selects: their number, and the next cursor (0 = the
        end).

        Begins at cursor 0; a page is at most `max_rows` rows of one stripe, which is locked
        meanwhile. `decide` gets each row that exists from the first page to the last once, unless
        another sweep drops rows at the same time: then it gets some twice. Memory is given back as
        rows go. A dropped id begins anew when it is pushed again.
        """
        return self._walk.sweep(cursor, max_rows, decide)

    def read_scores(self, routed: RoutedIds, out: F32) -> None:
        """Write the scores of the rows to `out` (n,), which keeps its value for an absent row."""
        for index in filter(routed.touches, self._in_turn()):
            order, found = routed.of(index), routed.found(index)
            self._stripes[index].read_scores(routed.ids, order, found, self.spec.score, out)

    def drop(self, ids: I64) -> None:
        """Drop the rows of `ids` that exist."""
        routed = self.route(ids)
        for index in filter(routed.touches, self._in_turn()):
            self._stripes[index].drop(ids[routed.of(index)])

    def _stripe(self, first_shard: int, last_shard: int) -> Stripe:
        spec = self.spec
        start, first_state = first_row(spec, self._rule)
        admission = admission_of(spec, first_shard, last_shard)
        return Stripe(self.layout, start, first_state, admission, preallocator=self._preallocator)

    def _read(self, stripe: int, routed: RoutedIds, out: F32) -> None:
        order, found = routed.of(stripe), routed.found(stripe)
        self._stripes[stripe].read(routed.ids, order, found, out)

    def _apply(self, stripe: int, routed: RoutedIds, update: RowUpdate) -> None:
        self._stripes[stripe].apply(update, routed.of(stripe), routed.found(stripe))

    def _in_turn(self) -> Iterator[int]:
        """All stripes; each caller begins with another one, so that callers run in parallel."""
        count = len(self._stripes)
        first = next(self._turns) % count
        yield from range(first, count)
        yield from range(first)
