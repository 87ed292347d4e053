"""One pserver's share of a sparse table: rows by id, over a few stripes.

Called from any handler thread. A batch is grouped by stripe once (`route`), then costs one kernel
call per stripe, under that stripe's lock only, so trainers proceed side by side; stripes of a large
batch are worked at side by side too, if there are threads to spare. Reading never creates a row:
the value of a row that was never updated is a function of the spec and its id.
A batch whose ids this pserver does not hold is refused by `route`, before anything is changed.
With a change log, as under Geo, the table also tells each trainer what others have pushed.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from psrt.core.clock import hours_since_1970
from psrt.core.errors import ErrorCode, TableError
from psrt.core.specs import SparseTableSpec, scales_by_shows
from psrt.core.types import F32, I32, I64
from psrt.kernels.lowlevel import virtual_shards
from psrt.kernels.optimizers import OptimizerRule, decay_of, rule_of
from psrt.kernels.tables import ONE_SHOW_EACH, RowUpdate, Start, encode, routing, table_layout
from psrt.pserver.tables.admission import admission_of
from psrt.pserver.tables.change_log import ChangeLog
from psrt.pserver.tables.hot_ids import HotIds
from psrt.pserver.tables.routed import Routed
from psrt.pserver.tables.slab_preallocator import SlabPreallocator
from psrt.pserver.tables.spare_threads import ALONE, SpareThreads
from psrt.pserver.tables.stripe import Decide, Stripe

LARGE_ROWS = 12_288
"""Rows of a batch from which a second thread is worth it: to wake it, and to be woken by it, takes
0.1 ms each, and both wait longer for memory. Of 8,192 rows of 16 weights nothing is gained."""

_STRIPE_SHIFT = 40  # a cursor is stripe << 40 | slots of it still to come


class _Place(NamedTuple):
    """Where a walk over all rows is: the rows of `stripe` before slot `end` come next.

    Walks go from the last slot of each stripe to its first. A dropped row makes the last one move
    into the hole, so rows only move to slots before their own: none slips behind a walk unseen.
    """

    stripe: int
    end: int


class SparseTable:
    """`version` counts the updates; rows exist once they were updated, and bear the time of that
    (`time`).

    `log` is guarded by a lock of its own; None = the table keeps none. `hours` is the time since
    1970, for rows that remember when they were pushed; `room` makes memory ahead of rows, `spare`
    threads take stripes of large batches.
    """

    def __init__(
        self,
        spec: SparseTableSpec,
        stripes: int,
        log: ChangeLog | None = None,
        hours: Callable[[], int] = hours_since_1970,
        room: SlabPreallocator | None = None,
        spare: SpareThreads = ALONE,
    ) -> None:
        self.spec = spec
        self._hours = hours
        self._room = room
        self._spare = spare
        self.version = 0
        self._time = 0  # of the latest update
        self._log = log
        self._log_lock = threading.Lock()
        self._rule = rule_of(spec.optimizer)
        self._decay = decay_of(spec.regularizer)
        self.layout = table_layout(spec, len(self._rule.first_state(spec.width)))
        held = spec.last_shard - spec.first_shard
        count = min(stripes, held)
        self._stripe_of_shard: I32 = np.full(spec.virtual_shards, routing.FOREIGN, np.int32)
        self._stripe_of_shard[spec.first_shard : spec.last_shard] = np.arange(held) * count // held
        bounds = [spec.first_shard - (-held * number // count) for number in range(count + 1)]
        self._stripes = [self._stripe(*shards) for shards in itertools.pairwise(bounds)]
        self._version_lock = threading.Lock()
        self._turns = itertools.count()
        self._hot_ids = HotIds()

    @property
    def rows(self) -> int:
        return sum(stripe.rows for stripe in self._stripes)

    @property
    def nbytes(self) -> int:
        """Rows, optimizer state and indices."""
        return sum(stripe.nbytes for stripe in self._stripes)

    @property
    def empty_bytes(self) -> int:
        """What `nbytes` is without any row."""
        return sum(stripe.empty_bytes for stripe in self._stripes)

    @property
    def waiting_bytes(self) -> int:
        """Memory set aside for ids that wait to be admitted, touched or not; not in `nbytes`."""
        return sum(stripe.waiting_bytes for stripe in self._stripes)

    @property
    def refused(self) -> int:
        """Updates of ids that were not admitted."""
        return sum(stripe.refused for stripe in self._stripes)

    def describe(self) -> dict[str, Any]:
        """Facts for STATUS: `load` is the share of the index that is taken, `hot_ids` are the ids
        pulled most, each with its share of all ids pulled (see `HotIds`)."""
        cells = sum(stripe.cells for stripe in self._stripes)
        return {
            "rows": self.rows,
            "width": self.spec.width,
            "storage": self.spec.storage,
            "load": round(self.rows / cells, 3),
            "logged_ids": self.logged_ids,
            "refused": self.refused,
            "waiting_bytes": self.waiting_bytes,
            "hot_ids": self._hot_ids.top(),
        }

    def time(self, now: int) -> int:
        """What the age of rows counts from when the job is at `now`: rounds, or mini-batches.

        It moves on for every share of a table alike, whether it is pushed to or not. Where updates
        move all rows it is the version, by which they tell the rows they have touched: all shares
        get these updates.
        """
        return self.version if self._rule.moves_all_rows else max(self._time, now)

    def route(self, ids: I64) -> Routed:
        """Group `ids` (n,) by stripe; raises `TableError` if one belongs to another pserver."""
        order, slots = np.empty(len(ids) + 1, np.int32), np.empty(len(ids), np.int32)
        starts = np.empty(len(self._stripes) + 2, np.int64)
        padding = self.spec.padding_id
        route = routing.route_few if len(ids) <= routing.FEW else routing.route
        foreign = route(
            *(ids, self._stripe_of_shard, padding is not None, padding or 0),
            *(slots, order, starts),
        )
        if foreign >= 0:
            raise self._foreign(ids[foreign : foreign + 1])
        return Routed(ids, order[:-1], starts.tolist(), slots)

    def read(self, routed: Routed, out: F32) -> int:
        """`out` (n, width) = weights of the rows; zeros for the padding id. The version read."""
        version = self.version
        self._hot_ids.pulled(routed.ids)
        touched = filter(routed.touches, self._in_turn())
        if len(routed.ids) >= LARGE_ROWS:
            self._spare.run([partial(self._read, index, routed, out) for index in touched])
        else:
            for index in touched:
                self._read(index, routed, out)
        if self.spec.padding_id is not None:
            out[routed.of(len(self._stripes))] = 0.0
        return version

    def apply(
        self,
        routed: Routed,
        gradients: F32,
        rate: float,
        counts: F32 | None = None,
        now: int = 0,
    ) -> None:
        """One update by `gradients` (n, width); creates rows, leaves the padding id alone.

        Rows decay when they are pushed, by the regularizer of the table; the others do not, even
        if the optimizer moves all. An id that stands twice is updated twice, in order, but both
        updates are counted before the first is made (bias correction of Adam). Ids that are not
        admitted are left alone. `counts` (n, 2) are the shows and clicks of the ids, by default
        one show each. `now` is what the job has reached by this update, in rounds or mini-batches;
        unsaid, one more than by the last.
        """
        to_all = self._rule.moves_all_rows
        with self._version_lock:
            self.version += 1
            self._time = max(self._time + 1, now)
            version = self.version if to_all else self._time
        if counts is not None and scales_by_shows(self.spec.optimizer):
            gradients = per_show(gradients, counts)
        decayed = None if self._decay is None else np.empty_like(gradients)
        update = RowUpdate(
            *(self._rule, routed.ids, gradients, version, rate, self._decay, decayed),
            hour=self._hours() if self.spec.keeps_seen else 0,
            counts=ONE_SHOW_EACH if counts is None else counts,
        )
        moved = self._in_turn() if to_all else filter(routed.touches, self._in_turn())
        if len(routed.ids) >= LARGE_ROWS or (to_all and self.rows >= LARGE_ROWS):
            self._spare.run([partial(self._apply, index, routed, update) for index in moved])
        else:
            for index in moved:
                self._apply(index, routed, update)

    @property
    def logs_changes(self) -> bool:
        return self._log is not None

    @property
    def logged_ids(self) -> int:
        """Ids that the log holds, some of them several times."""
        return len(self._log) if self._log is not None else 0

    @property
    def logged_to(self) -> int:
        """The position up to which changes are logged; it only grows."""
        return self._log.end if self._log is not None else 0

    def log(self, trainer: int, routed: Routed) -> None:
        """`trainer` has pushed these rows, and they are applied.

        Not earlier: whoever reads a row because of the log must find the change in it.
        """
        if self._log is None:
            return
        padding = self.spec.padding_id
        ids = routed.ids if padding is None else routed.ids[routed.ids != padding]
        with self._log_lock:
            self._log.add(trainer, ids)

    def changed(self, trainer: int, position: int) -> tuple[I64, int]:
        """The ids (n,) of rows that others than `trainer` have pushed since `position`, and the
        position to ask from next. All rows that exist, if position is 0 or too long ago."""
        assert self._log is not None, "asked of a table without a log"
        with self._log_lock:
            ids, end = self._log.since(trainer, position), self._log.end
        if ids is None:
            ids = np.concatenate([stripe.ids() for stripe in self._stripes])
        return ids, end

    def release(self, trainer: int) -> None:
        """`trainer` asks for no changes any more."""
        if self._log is not None:
            with self._log_lock:
                self._log.release(trainer)

    def export(self, cursor: int, max_rows: int) -> tuple[I64, F32, int]:
        """A page of the rows: ids (n,), weights (n, width), and the next cursor (0 = the end).

        Begins at cursor 0. The pages hold every row that exists all the time: once, and once more
        each time that rows are dropped meanwhile and it moves. Rows created meanwhile may be
        missing.
        """
        ids: list[I64] = [np.empty(0, np.int64)]
        weights: list[F32] = [np.empty((0, self.spec.width), np.float32)]
        place = self._place(cursor)
        while max_rows > 0 and place is not None:
            page_ids, page, end = self._stripes[place.stripe].page(place.end, max_rows)
            ids.append(page_ids)
            weights.append(page)
            max_rows -= len(page_ids)
            place = self._next(place.stripe, end)
        return np.concatenate(ids), np.concatenate(weights), _cursor(place)

    def sweep(self, cursor: int, max_rows: int, decide: Decide) -> tuple[int, int]:
        """Look at a page of the rows and drop some: how many, and the next cursor (0 = the end).

        Begins at cursor 0; a page is at most `max_rows` rows of one stripe, whose lock is held
        meanwhile. Each row that exists from the first page to the last is shown to `decide` once,
        unless another sweep drops rows at the same time: then some are shown twice. Memory is given
        back as rows go. A dropped id begins anew when it is pushed again.
        """
        place = self._place(cursor)
        if place is None:
            return 0, 0
        dropped, end = self._stripes[place.stripe].sweep(place.end, max_rows, decide)
        return dropped, _cursor(self._next(place.stripe, end))

    def read_scores(self, routed: Routed, out: F32) -> None:
        """`out` (n,) = scores of the rows; where there is no row it stays."""
        for index in filter(routed.touches, self._in_turn()):
            order, found = routed.of(index), routed.found(index)
            self._stripes[index].read_scores(routed.ids, order, found, self.spec.score, out)

    def drop(self, ids: I64) -> None:
        """Forget these rows, those of them that are there."""
        routed = self.route(ids)
        for index in filter(routed.touches, self._in_turn()):
            self._stripes[index].drop(ids[routed.of(index)])

    def _stripe(self, first_shard: int, last_shard: int) -> Stripe:
        spec = self.spec
        start, first_state = first_row(spec, self._rule)
        admission = admission_of(spec, first_shard, last_shard)
        return Stripe(self.layout, start, first_state, admission, room=self._room)

    def _read(self, stripe: int, routed: Routed, out: F32) -> None:
        order, found = routed.of(stripe), routed.found(stripe)
        self._stripes[stripe].read(routed.ids, order, found, out)

    def _apply(self, stripe: int, routed: Routed, update: RowUpdate) -> None:
        self._stripes[stripe].apply(update, routed.of(stripe), routed.found(stripe))

    def _place(self, cursor: int) -> _Place | None:
        if cursor == 0:
            return self._next(-1, 0)
        stripe, end = cursor >> _STRIPE_SHIFT, cursor & ((1 << _STRIPE_SHIFT) - 1)
        return self._next(stripe, end) if stripe < len(self._stripes) else None

    def _next(self, stripe: int, end: int) -> _Place | None:
        """Where a walk goes on when rows 0 to `end` of a stripe are to come; None at its end."""
        if end > 0:
            return _Place(stripe, end)
        for index in range(stripe + 1, len(self._stripes)):
            if rows := self._stripes[index].rows:
                return _Place(index, rows)
        return None

    def _in_turn(self) -> Iterator[int]:
        """All stripes; each caller begins elsewhere, to be side by side."""
        count = len(self._stripes)
        first = next(self._turns) % count
        yield from range(first, count)
        yield from range(first)

    def _foreign(self, ids: I64) -> TableError:
        shard = np.empty(1, np.int32)
        virtual_shards(ids, self.spec.virtual_shards, shard)
        return TableError(
            f"id {ids[0]} of table {self.spec.name} lies in virtual shard {shard[0]}, but this "
            f"pserver holds shards {self.spec.first_shard} to {self.spec.last_shard - 1}; "
            "the call was refused.",
            code=ErrorCode.TABLE_SHAPE,
            hint="Trainer and pserver must use the same partition plan and hash.",
        )


def _cursor(place: _Place | None) -> int:
    return 0 if place is None else place.stripe << _STRIPE_SHIFT | place.end


def first_row(spec: SparseTableSpec, rule: OptimizerRule) -> tuple[Start, F32]:
    """What a row begins with: its weights, its state (words,)."""
    return (*encode(spec.initializer), spec.seed), rule.first_state(spec.width)


def per_show(gradients: F32, counts: F32) -> F32:
    """Gradients (n, d), each divided by the shows in `counts` (n, 2), if there were any."""
    shows = counts[:, :1]
    shows = np.where((shows > 0) & (shows < np.inf), shows, np.float32(1))
    scaled: F32 = np.divide(gradients, shows, dtype=np.float32)
    return scaled
