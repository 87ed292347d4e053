"""What an optimizer is to a table: the state a weight needs, and the kernels that move it.

A rule is the same for pservers and for local training. It is stateless and shared; whoever calls it
holds weights and state and their lock. `psrt.kernels.optimizers.registry` makes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from psrt.core.types import I32, Array
from psrt.kernels.jit import Kernel

Numbers: TypeAlias = Callable[[float, int], tuple[Any, ...]]
"""(rate, t) → the arguments of a kernel behind weights, state and gradient; t = 1, 2, …"""


class RowTable(NamedTuple):
    """Rows with their weights from column `at` on in one array, and their state in another.

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
    moves all rows of a table; it takes the numbers of `block`. Without `reads_headers` nobody but
    a pserver needs the headers of rows to be written.
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
        """The state (words,) float32 that a row of `width` weights begins with."""
        return np.repeat(np.array(self.first, np.float32), 1 if self.shares_state else width)

    @property
    def moves_all_rows(self) -> bool:
        return self.rest is not None

    def update_block(self, w: Array, state: Array, g: Array, rate: float, t: int) -> None:
        """Update `w` (n,) and `state` (state_vectors, n) by gradient `g` (n,) for the t-th time."""
        self.block(w, *state, g, *self.block_numbers(rate, t))

    def update_rows(self, table: RowTable, touched: TouchedRows, rate: float, t: int) -> None:
        """Update the touched rows; t counts the updates of the table."""
        self.rows(*table, *touched, *self.row_numbers(rate, t))

    def update_rest(
        self, table: RowTable, size: int, version: int, width: int, rate: float, t: int
    ) -> None:
        """Move those of the first `size` rows whose header does not bear `version`."""
        assert self.rest is not None
        zeros = np.zeros(width, table.weights.dtype)
        self.rest(*table, size, version, zeros, *self.block_numbers(rate, t))


def constant_rule(
    first: tuple[float, ...], block: Kernel, rows: Kernel, *numbers: float
) -> OptimizerRule:
    """A rule whose kernels take the rate and `numbers`, the same at every step."""

    def arguments(rate: float, t: int) -> tuple[float, ...]:
        return (rate, *numbers)

    return OptimizerRule(first, block, rows, arguments, arguments, reads_headers=False)
