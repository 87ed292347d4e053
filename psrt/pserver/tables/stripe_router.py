"""Batches of ids, grouped by the stripes of their table."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from psrt.core.errors import ErrorCode, TableError
from psrt.core.specs import SparseTableSpec
from psrt.core.types import I32, I64
from psrt.kernels.lowlevel import virtual_shards
from psrt.kernels.tables import no_hints, routing


@dataclass(frozen=True)
class RoutedIds:
    """A batch of ids (n,) grouped by stripe (`psrt.kernels.tables.routing`); used by one thread.

    `slots` are the latest known slots of their rows: see `RowStore.find`.
    """

    ids: I64
    order: I32
    starts: list[int]
    slots: I32

    def touches(self, stripe: int) -> bool:
        return self.starts[stripe] < self.starts[stripe + 1]

    def of(self, stripe: int) -> I32:
        """Positions in the batch of the ids of `stripe`."""
        return self.order[self.starts[stripe] : self.starts[stripe + 1]]

    def found(self, stripe: int) -> I32:
        """The slots of these ids."""
        return self.slots[self.starts[stripe] : self.starts[stripe + 1]]

    @property
    def nbytes(self) -> int:
        return self.ids.nbytes + self.order.nbytes + self.slots.nbytes

    def copy(self) -> RoutedIds:
        """A copy to keep, outside the memory of a message."""
        flags = self.ids.flags  # a read-only array that is no view never changes
        ids = self.ids if flags.owndata and not flags.writeable else self.ids.copy()
        return RoutedIds(ids, self.order, self.starts, self.slots)

    def again(self) -> RoutedIds:
        """A copy for another thread, with slots of its own."""
        return RoutedIds(self.ids, self.order, self.starts, self.slots.copy())

    def elsewhere(self) -> RoutedIds:
        """A copy for a table that has other rows of these ids."""
        return RoutedIds(self.ids, self.order, self.starts, no_hints(len(self.order)))


class StripeRouter:
    """Assigns the virtual shards of `spec` to `stripes` stripes, or to fewer if it has fewer.

    `shards` has the (first, last + 1) virtual shard of each stripe.
    """

    def __init__(self, spec: SparseTableSpec, stripes: int) -> None:
        held = spec.last_shard - spec.first_shard
        count = min(stripes, held)
        bounds = [spec.first_shard - (-held * number // count) for number in range(count + 1)]
        self.shards = list(itertools.pairwise(bounds))
        self._spec = spec
        self._stripe_of_shard: I32 = np.full(spec.virtual_shards, routing.FOREIGN, np.int32)
        self._stripe_of_shard[spec.first_shard : spec.last_shard] = np.arange(held) * count // held

    def route(self, ids: I64) -> RoutedIds:
        """Group `ids` (n,) by stripe; raises `TableError` if one belongs to another pserver."""
        order, slots = np.empty(len(ids) + 1, np.int32), np.empty(len(ids), np.int32)
        starts = np.empty(len(self.shards) + 2, np.int64)
        padding = self._spec.padding_id
        route = routing.route_few if len(ids) <= routing.FEW else routing.route
        foreign = route(
            *(ids, self._stripe_of_shard, padding is not None, padding or 0),
            *(slots, order, starts),
        )
        if foreign >= 0:
            raise self._foreign(ids[foreign : foreign + 1])
        return RoutedIds(ids, order[:-1], starts.tolist(), slots)

    def _foreign(self, ids: I64) -> TableError:
        spec, shard = self._spec, np.empty(1, np.int32)
        virtual_shards(ids, spec.virtual_shards, shard)
        return TableError(
            f"id {ids[0]} of table {spec.name} is in virtual shard {shard[0]}, but this "
            f"pserver holds shards {spec.first_shard} to {spec.last_shard - 1}; "
            "the call was refused.",
            code=ErrorCode.TABLE_SHAPE,
            hint="Trainer and pserver must use the same partition plan and hash.",
        )
