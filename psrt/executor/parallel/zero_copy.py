"""Sparse tables whose rows replicas read in the scope, without a copy.

Nothing is fetched before the step: an id is the number of its row. Only gradient and update need
distinct ids; `find_distinct_ids` is a node of the graph that runs alongside the forward. It covers
the whole batch, so the gradients of all replicas have the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from psrt.executor.memory import Joined, Scope, SharedIds
from psrt.executor.parallel.replicas import Replica
from psrt.kernels.tables import CellBuffer, unique_of


class ZeroCopyTable:
    """One table, for all replicas; call `load` before every step, and `find_distinct_ids` within a
    step that has a backward."""

    def __init__(self, name: str, names: Sequence[str], replicas: Sequence[Replica]) -> None:
        """`names` are the data vars that look up the table."""
        self.name = name
        self._tables = [replica.compiled.rows[name] for replica in replicas]
        cells = [replica.compiled.cells for replica in replicas]
        self._shares = [SharedIds([each[name] for name in names]) for each in cells]
        self._dtype = replicas[0].compiled.dtype
        self._cells = CellBuffer(keeps=True)

    def fits(self, scopes: Sequence[Scope]) -> bool:
        """True if kernels can read the arrays without a copy."""
        arrays = (scope[self.name] for scope in scopes)
        return all(array.dtype == self._dtype and array.flags.c_contiguous for array in arrays)

    def load(self) -> None:
        """Reset the joined ids after the replicas have loaded a batch."""
        for table, share in zip(self._tables, self._shares, strict=True):
            share.renew()
            table.joined_ids = share

    def find_distinct_ids(self, active: Sequence[int]) -> None:
        """Find the distinct ids of the shares of the `active` replicas, for all gradients.

        The shares are concatenated, so that the gradient rows of a replica are one slice.
        """
        shares = [self._shares[number].ids() for number in active]
        ids, gradient_rows = unique_of(shares, self._cells)
        slots, stop = ids.astype(np.int32), 0
        for table in self._tables:
            table.set_gradient_rows(ids, slots, None)
        for number, share in zip(active, shares, strict=True):
            start, stop = stop, stop + len(share)
            own = Joined(gradient_rows[start:stop], self._shares[number].counts())
            self._tables[number].set_gradient_rows(ids, slots, own)
