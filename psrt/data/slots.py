"""Slots: the fields of an example, and batches of them.

A slot is declared alone (`Slot`) or by the data var it feeds: anything with `name`, `dtype`,
`shape` and `ragged`. An int64 var is a slot of ids, any other a slot of floats. Values that files
give are put in the declared shape, and not changed otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np

from psrt.core.errors import ConfigError
from psrt.core.tensors import Ragged
from psrt.core.types import I64, Array, Shape

Batch: TypeAlias = "dict[str, Array | Ragged]"


@dataclass(frozen=True)
class Slot:
    """One field of a line; `size` is the number of values of a dense slot, None = ragged."""

    name: str
    dtype: Literal["uint64", "float"]
    size: int | None = None

    def __post_init__(self) -> None:
        if self.dtype not in ("uint64", "float"):
            raise ConfigError(f"slot {self.name!r}: dtype is uint64 or float, not {self.dtype!r}")
        if self.size is not None and self.size < 1:
            raise ConfigError(f"slot {self.name!r}: a dense slot has 1 value or more")


class DataVar(Protocol):
    """The attributes of a var that define its slot; `shape` begins with the batch, -1."""

    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> Shape: ...
    @property
    def ragged(self) -> bool: ...


def slot_of(var: DataVar | Slot) -> Slot:
    """Return the slot of a data file that feeds a data var."""
    if isinstance(var, Slot):
        return var
    size = None if var.ragged or min(var.shape, default=1) < -1 else math.prod(var.shape[1:])
    return Slot(var.name, "uint64" if var.dtype == "int64" else "float", size)


def shaped(vars: Iterable[DataVar | Slot], batch: Batch) -> Batch:
    """Return the fields of a batch that feed `vars`, in their shapes; of slots (rows, size)."""
    return {var.name: _shaped(var, batch[var.name]) for var in vars}


def batch_rows(batch: Batch) -> int:
    """Return the number of examples."""
    first = next(iter(batch.values()))
    return first.batch_size if isinstance(first, Ragged) else len(first)


def ends_of(lengths: Array) -> I64:
    """Return 0 and the running sums: offsets (n + 1,) of parts with `lengths` (n,)."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def shared_offsets(offsets: I64) -> list[I64]:
    """Return the offsets of each slot, given as (slots, examples + 1).

    Slots of one value in each example share one array, which checks of a batch read once.
    """
    one_each = np.arange(offsets.shape[1], dtype=np.int64)
    are_equal = (offsets == one_each).all(axis=1).tolist()
    return [one_each if equal else line for equal, line in zip(are_equal, offsets, strict=True)]


def _shaped(var: DataVar | Slot, fed: Array | Ragged) -> Array | Ragged:
    if isinstance(var, Slot) or isinstance(fed, Ragged):
        return fed
    return fed.reshape(var.shape)
