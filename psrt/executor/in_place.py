"""Sparse tables that replicas look up where they stand, whole in the scope.

Nothing is fetched before the step: an id is the number of its row. Only the gradient and the update
need each id once; `number` finds that out as a node of the graph, beside the forward. The ids of
the whole batch are numbered together, so the gradients of replicas have the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from psrt.core.types import I32
from psrt.executor.bindings import joined_ids
from psrt.executor.cells import Memory
from psrt.executor.feeds import Feed
from psrt.executor.replicas import Replica
from psrt.executor.scope import Scope
from psrt.executor.shares import Share, part_of_ids
from psrt.kernels.rows import Cells, unique


class TableInPlace:
    """One table, for all replicas; in every step `load` before it and `number` as a part of it."""

    def __init__(self, name: str, names: Sequence[str], replicas: Sequence[Replica]) -> None:
        """`names` are the data vars that look up the table."""
        self.name, self._names = name, names
        self._tables = [replica.compiled.rows[name] for replica in replicas]
        self._dtype, self._vars = replicas[0].compiled.dtype, replicas[0].fed
        self._memory, self._cells = Memory(), Cells(keeps=True)
        self._batch: tuple[Feed, Sequence[Share]] | None = None

    def fits(self, scopes: Sequence[Scope]) -> bool:
        """Whether kernels take the arrays as they are."""
        arrays = (scope[self.name] for scope in scopes)
        return all(array.dtype == self._dtype and array.flags.c_contiguous for array in arrays)

    def load(self, feed: Feed, cut: Sequence[Share]) -> None:
        """Take a batch of which each replica has its share."""
        self._batch = (feed, cut)

    def number(self) -> None:
        """Find the distinct ids of the batch, for the gradients of all replicas."""
        assert self._batch is not None, f"no batch was loaded for {self.name}"
        feed, cut = self._batch
        joined = joined_ids(feed, self._names, self._memory)
        ids, places = unique(joined.flat, self._cells)
        slots = ids.astype(np.int32)
        for table, share in zip(self._tables, cut, strict=True):

            def of_share(share: Share = share) -> dict[str, I32]:
                own = part_of_ids(share, joined, feed, self._vars)
                return {name: places[span] for name, span in own.items()}

            table.number(ids, slots, of_share)
