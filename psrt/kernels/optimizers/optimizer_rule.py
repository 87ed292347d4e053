"""The rule of an optimizer for tables: the state a weight needs, and the kernels that update it.

Pservers and local training share rules. A rule is stateless; its caller holds weights, state and
their lock. `psrt.kernels.optimizers.registry` makes rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from psrt.core.types import I32, Array

Numbers: TypeAlias = Callable[[float, int], tuple[Any, ...]]
"""(rate, t) → the arguments of a kernel behind its arrays; t = 1, 2, …"""


class RowTable(NamedTuple):
    """Rows with weights from column `at` on in one array, and state in another.

    Rows of `state` begin with the header; on a pserver the two are one slab.
    """

    weights: Array
    at: int
    state: Array
    state_at: int


class TouchedRows(NamedTuple):
    """`gradients[order[k]]` (d,) is for row `slots[k]`, whose header is written already."""

    slots: I32
    order: I32
    gradients: Array


@dataclass(frozen=True)
class OptimizerRule:
    """`first` holds the first value of each state vector; their number is the size of the state.

    With `shares_state` all weights of a row share one number of each. `rest` is set if an update
    moves all rows of a table; it takes the numbers of `block`. Without `reads_headers` only a
    pserver needs the headers of rows.
    """

    first: tuple[float, ...]
    block: Callable[..., Any]
    rows: Callable[..., Any]
    block_numbers: Numbers
    row_numbers: Numbers
    rest: Callable[..., Any] | None = None
    reads_headers: bool = True
    shares_state: bool = False

    @property
    def state_vectors(self) -> int:
        """Numbers of state per weight of a block."""
        return len(self.first)

    def first_state(self, width: int) -> Array:
        """The first state (words,) float32 of a row of `width` weights."""
        return np.repeat(np.array(self.first, np.float32), 1 if self.shares_state else width)

    @property
    def moves_all_rows(self) -> bool:
        return self.rest is not None

    def update_block(self, w: Array, state: Array, g: Array, rate: float, t: int) -> None:
        """Make the t-th update of `w` (n,) and `state` (state_vectors, n), by gradient `g` (n,)."""
        self.block(w, *state, g, *self.block_numbers(rate, t))

    def update_rows(self, table: RowTable, touched: TouchedRows, rate: float, t: int) -> None:
        """Update the touched rows; t counts the updates of the table."""
        self.rows(*table, *touched, *self.row_numbers(rate, t))

    def update_rest(
        self, table: RowTable, size: int, version: int, width: int, rate: float, t: int
    ) -> None:
        """Move those of the first `size` rows whose header does not have `version`."""
        assert self.rest is not None
        zeros = np.zeros(width, table.weights.dtype)
        self.rest(*table, size, version, zeros, *self.block_numbers(rate, t))
