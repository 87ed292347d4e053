"""The two composite tensors of psrt: sparse gradients and variable-length slots."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psrt.core.types import F32, I64, Array


@dataclass(frozen=True)
class SelectedRows:
    """A sparse gradient: `ids` (n,) int64, `values` (n, d) float32, `height` rows in the table.

    With `unique`, no id is repeated. `height` is 0 for tables of unbounded id space. `counts` (n,
    2) float32 are the shows and clicks of each id, for tables that need them.
    """

    ids: I64
    values: F32
    height: int = 0
    unique: bool = False
    counts: F32 | None = None

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or len(self.ids) != len(self.values):
            raise ValueError(
                f"SelectedRows: {self.ids.shape} ids do not fit values of shape {self.values.shape}"
            )
        if self.counts is not None and self.counts.shape != (len(self.ids), 2):
            raise ValueError(
                f"SelectedRows: counts of shape {self.counts.shape} for {len(self.ids)} ids"
            )


@dataclass(frozen=True)
class Ragged:
    """A variable-length slot of one mini-batch.

    `values` (n, ...) holds all elements of all examples in order; example i owns
    `values[offsets[i]:offsets[i + 1]]`; `offsets` (batch + 1,) int64 starts at 0 and ends at n.
    """

    values: Array
    offsets: I64

    @property
    def batch_size(self) -> int:
        """Number of examples."""
        return len(self.offsets) - 1

    @classmethod
    def of(cls, rows: list[list[int]] | list[list[float]], dtype: str = "int64") -> Ragged:
        """Build from one list per example (for tests and small scripts)."""
        lengths = [len(row) for row in rows]
        flat = [value for row in rows for value in row]
        offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
        return cls(np.asarray(flat, dtype=dtype), offsets)
