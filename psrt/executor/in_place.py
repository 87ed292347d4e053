"""Sparse tables that replicas look up where they stand, whole in the scope.

Nothing is fetched before the step: an id is the number of its row. Only the gradient and the update
need each id once; `number` finds that out as a node of the graph, beside the forward. The ids of
the whole batch are numbered together, so the gradients of replicas have the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from psrt.core.types import I64, Array
from psrt.executor.bindings import Joined, join
from psrt.executor.cells import Memory
from psrt.executor.replicas import Replica
from psrt.executor.scope import Scope
from psrt.kernels.rows import Cells, unique

_ID = np.dtype(np.int64)


class TableInPlace:
    """One table, for all replicas; `number` is a part of every step with a backward."""

    def __init__(self, name: str, names: Sequence[str], replicas: Sequence[Replica]) -> None:
        """`names` are the data vars that look up the table."""
        self.name, self._names = name, names
        self._tables = [replica.compiled.rows[name] for replica in replicas]
        self._slots = [[replica.compiled.cells[each] for each in names] for replica in replicas]
        self._dtype = replicas[0].compiled.dtype
        self._memory, self._cells = Memory(), Cells(keeps=True)

    def fits(self, scopes: Sequence[Scope]) -> bool:
        """Whether kernels take the arrays as they are."""
        arrays = (scope[self.name] for scope in scopes)
        return all(array.dtype == self._dtype and array.flags.c_contiguous for array in arrays)

    def number(self, active: Sequence[int]) -> None:
        """Find the distinct ids of the shares of the `active` replicas, for the gradients of all.

        The shares stand one behind the other, so that what is found of a replica's is one array.
        """
        shares = [[ids.value.reshape(-1) for ids in self._slots[number]] for number in active]
        counts = [[len(ids) for ids in share] for share in shares]
        sizes = [sum(each) for each in counts]
        ids, places = unique(self._joined(shares, sum(sizes)), self._cells)
        slots, stop = ids.astype(np.int32), 0
        for table in self._tables:
            table.number(ids, slots, None)
        for number, each, size in zip(active, counts, sizes, strict=True):
            start, stop = stop, stop + size
            own = Joined(places[start:stop], dict(zip(self._names, each, strict=True)))
            self._tables[number].number(ids, slots, own)

    def _joined(self, shares: Sequence[Sequence[Array]], size: int) -> I64:
        parts = [ids for share in shares for ids in share]
        joined: I64 = join(parts, self._memory.array((size,), _ID))
        return joined
