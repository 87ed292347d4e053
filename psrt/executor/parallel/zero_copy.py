"""Sparse tables that replicas look up where they stand, whole in the scope.

Nothing is fetched before the step: an id is the number of its row. Only the gradient and the update
need each id once; `number` finds that out as a node of the graph, beside the forward. The ids of
the whole batch are numbered together, so the gradients of replicas have the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from psrt.executor.memory import Joined, Scope, SharedIds
from psrt.executor.parallel.replicas import Replica
from psrt.kernels.tables import CellBuffer, unique_of


class ZeroCopyTable:
    """One table, for all replicas; in every step `load` before it, and `number` as a part of it if
    there is a backward."""

    def __init__(self, name: str, names: Sequence[str], replicas: Sequence[Replica]) -> None:
        """`names` are the data vars that look up the table."""
        self.name = name
        self._tables = [replica.compiled.rows[name] for replica in replicas]
        cells = [replica.compiled.cells for replica in replicas]
        self._shares = [SharedIds([each[name] for name in names]) for each in cells]
        self._dtype = replicas[0].compiled.dtype
        self._cells = CellBuffer(keeps=True)

    def fits(self, scopes: Sequence[Scope]) -> bool:
        """Whether kernels take the arrays as they are."""
        arrays = (scope[self.name] for scope in scopes)
        return all(array.dtype == self._dtype and array.flags.c_contiguous for array in arrays)

    def load(self) -> None:
        """The replicas have taken another batch."""
        for table, share in zip(self._tables, self._shares, strict=True):
            share.renew()
            table.looked_up = share

    def number(self, active: Sequence[int]) -> None:
        """Find the distinct ids of the shares of the `active` replicas, for the gradients of all.

        The shares stand one behind the other, so that what is found of a replica's is one array.
        """
        shares = [self._shares[number].ids() for number in active]
        ids, places = unique_of(shares, self._cells)
        slots, stop = ids.astype(np.int32), 0
        for table in self._tables:
            table.number(ids, slots, None)
        for number, share in zip(active, shares, strict=True):
            start, stop = stop, stop + len(share)
            own = Joined(places[start:stop], self._shares[number].counts())
            self._tables[number].number(ids, slots, own)
