"""One pserver's share of a sparse table: rows by id, over a few stripes.

Called from any handler thread. A batch is grouped by stripe once (`route`), then costs one kernel
call per stripe, under that stripe's lock only, so trainers proceed side by side. Reading never
creates a row: the value of a row that was never updated is a function of the spec and its id.
A batch whose ids this pserver does not hold is refused by `route`, before anything is changed.
With a change log, as under Geo, the table also tells each trainer what others have pushed.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from psrt.core.errors import ErrorCode, TableError
from psrt.core.specs import SparseTableSpec
from psrt.core.types import F32, I32, I64
from psrt.kernels import slab
from psrt.kernels.decay import decay_of
from psrt.kernels.hashing import virtual_shards
from psrt.kernels.initialize import encode
from psrt.kernels.optimizer_rows import HEADER_WORDS
from psrt.kernels.rules import rule_of
from psrt.pserver.change_log import ChangeLog
from psrt.pserver.stripe import RowUpdate, Stripe

_STRIPE_SHIFT = 40  # an export cursor is stripe << 40 | slot


@dataclass(frozen=True)
class Routed:
    """A batch of ids (n,) grouped by stripe (`psrt.kernels.slab.route`); one thread uses it."""

    ids: I64
    order: I32
    starts: list[int]
    scratch: I32

    def touches(self, stripe: int) -> bool:
        return self.starts[stripe] < self.starts[stripe + 1]

    def of(self, stripe: int) -> I32:
        """Positions in the batch of the ids of `stripe`."""
        return self.order[self.starts[stripe] : self.starts[stripe + 1]]

    def found(self, stripe: int) -> I32:
        """Scratch for the slots of these ids."""
        return self.scratch[self.starts[stripe] : self.starts[stripe + 1]]


class SparseTable:
    """`version` counts the updates; rows exist once they were updated.

    `log` is guarded by a lock of its own; None = the table keeps none.
    """

    def __init__(self, spec: SparseTableSpec, stripes: int, log: ChangeLog | None = None) -> None:
        self.spec = spec
        self.version = 0
        self._log = log
        self._log_lock = threading.Lock()
        self._rule = rule_of(spec.optimizer)
        self._decay = decay_of(spec.regularizer)
        self._start = (*encode(spec.initializer), spec.seed)
        self._first: F32 = np.array(self._rule.first, np.float32)
        held = spec.last_shard - spec.first_shard
        count = min(stripes, held)
        words = HEADER_WORDS + spec.width * (1 + self._rule.state_vectors)
        self._stripes = [Stripe(words) for _ in range(count)]
        self._stripe_of_shard: I32 = np.full(spec.virtual_shards, slab.FOREIGN, np.int32)
        self._stripe_of_shard[spec.first_shard : spec.last_shard] = np.arange(held) * count // held
        self._version_lock = threading.Lock()
        self._turns = itertools.count()

    @property
    def rows(self) -> int:
        return sum(stripe.rows for stripe in self._stripes)

    @property
    def nbytes(self) -> int:
        """Rows, optimizer state and id maps."""
        return sum(stripe.nbytes for stripe in self._stripes)

    def route(self, ids: I64) -> Routed:
        """Group `ids` (n,) by stripe; raises `TableError` if one belongs to another pserver."""
        order, scratch = np.empty(len(ids), np.int32), np.empty(len(ids), np.int32)
        starts = np.empty(len(self._stripes) + 2, np.int64)
        padding = self.spec.padding_id
        foreign = slab.route(
            *(ids, self._stripe_of_shard, padding is not None, padding or 0),
            *(scratch, order, starts),
        )
        if foreign >= 0:
            raise self._foreign(ids[foreign : foreign + 1])
        return Routed(ids, order, starts.tolist(), scratch)

    def read(self, routed: Routed, out: F32) -> int:
        """`out` (n, width) = weights of the rows; zeros for the padding id. The version read."""
        version = self.version
        for index in filter(routed.touches, self._in_turn()):
            stripe, order, found = self._stripes[index], routed.of(index), routed.found(index)
            stripe.read(routed.ids, order, found, self._start, out)
        if self.spec.padding_id is not None:
            out[routed.of(len(self._stripes))] = 0.0
        return version

    def apply(self, routed: Routed, gradients: F32, rate: float) -> None:
        """One update by `gradients` (n, width); creates rows, leaves the padding id alone.

        Rows decay when they are pushed, by the regularizer of the table; the others do not, even
        if the optimizer moves all. An id that stands twice is updated twice, in order.
        """
        with self._version_lock:
            self.version += 1
            version = self.version
        decayed = gradients if self._decay is None else np.empty_like(gradients)
        update = RowUpdate(
            *(self._rule, self._start, self._first, routed.ids, gradients, version, rate),
            *(self._decay, decayed),
        )
        for index in self._in_turn():
            if self._rule.moves_all_rows or routed.touches(index):
                self._stripes[index].apply(update, routed.of(index), routed.found(index))

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

        Begins at cursor 0. Rows stay where they are, so while nothing is pushed the pages hold
        every row once; rows created meanwhile may be missing.
        """
        ids: list[I64] = []
        weights: list[F32] = []
        index, slot = cursor >> _STRIPE_SHIFT, cursor & ((1 << _STRIPE_SHIFT) - 1)
        while max_rows > 0 and index < len(self._stripes):
            page_ids, page = self._stripes[index].page(slot, max_rows, self.spec.width)
            ids.append(page_ids)
            weights.append(page)
            max_rows -= len(page_ids)
            index, slot = (index, slot + len(page_ids)) if max_rows == 0 else (index + 1, 0)
        end = index >= len(self._stripes)
        all_ids = np.concatenate([np.empty(0, np.int64), *ids])
        all_weights = np.concatenate([np.empty((0, self.spec.width), np.float32), *weights])
        return all_ids, all_weights, 0 if end else index << _STRIPE_SHIFT | slot

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
