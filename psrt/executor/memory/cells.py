"""The memory behind vars at run time.

Ops are compiled against cells, not names, so a step has no look-ups by name. An op reserves the
memory of its outputs in every step, and gets that of the last step unless the batch has grown.
An op never writes into its inputs, so an output may alias an input; `compute.registry.ALIASING`
lists the op types that do, because memory plans depend on it.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from psrt.core.types import I64, Array, Shape

_NOTHING: Array = np.empty(0)
_LINE_BYTES = 64
_GROWTH = 1.25  # ragged batches differ a little in size: avoids an allocation in each step


class CellMemory:
    """Bytes for the values of one cell, or of several whose lifetimes do not overlap.

    They start at a cache line. `owner` is the array that owns them, the base of all views.
    """

    __slots__ = ("_bytes", "owner")

    def __init__(self) -> None:
        self.drop()

    def array(self, shape: Shape, dtype: np.dtype[Any]) -> Array:
        size = math.prod(shape) * dtype.itemsize
        if size > len(self._bytes):
            self._grow(max(size, int(_GROWTH * len(self._bytes))))
        view: Array = self._bytes[:size].view(dtype).reshape(shape)
        return view

    def drop(self) -> None:
        """Release the memory; the next value allocates new memory."""
        self.owner: Array = np.empty(0, np.uint8)
        self._bytes = self.owner

    @property
    def size_bytes(self) -> int:
        return len(self._bytes)

    def _grow(self, size: int) -> None:
        self.owner = np.empty(size + _LINE_BYTES, np.uint8)
        start = -self.owner.ctypes.data % _LINE_BYTES
        self._bytes = self.owner[start : start + size]


class Cell:
    """One var: its value in this step, and for a ragged one the offsets of the examples.

    `value` is C-contiguous unless it aliases a part of a larger array. A cell that `follows`
    another has its offsets: a ragged var computed from a ragged var element by element.
    `may_alias` is whether the value may be a part of another cell's.
    """

    __slots__ = ("_offsets", "_own", "dtype", "follows", "may_alias", "memory", "name", "value")

    def __init__(self, name: str, dtype: Any, may_alias: bool = False) -> None:
        self.name = name
        self.dtype = np.dtype(dtype)
        self.may_alias = may_alias
        self.value = self._own = _NOTHING
        self.follows: Cell | None = None
        self._offsets: I64 | None = None
        self.memory = CellMemory()

    @property
    def offsets(self) -> I64 | None:
        """The start of each example among the elements, (examples + 1,); None if not ragged."""
        return self._offsets if self.follows is None else self.follows.offsets

    @offsets.setter
    def offsets(self, offsets: I64 | None) -> None:
        self._offsets = offsets

    def reserve(self, shape: Shape) -> Array:
        """Return memory of `shape` for the value; its contents are stale."""
        own = self._own
        if own.shape != shape or own.base is not self.memory.owner:
            own = self._own = self.memory.array(shape, self.dtype)
        self.value = own
        return own

    def alias(self, array: Array) -> None:
        """Set the value to an array that another cell owns."""
        assert self.may_alias, f"{self.name} is written by an op type that is not in ALIASING"
        self.value = array

    def drop(self) -> None:
        """Release value and memory until the next step."""
        self.value = self._own = _NOTHING
        self.memory.drop()


class GradientCell(Cell):
    """The gradient of a parameter, double-buffered.

    After a `swap` the next backward leaves the last gradient unchanged, so a communicator may still
    read it while the trainer computes.
    """

    __slots__ = ("_resting", "_resting_own")

    def __init__(self, name: str, dtype: Any) -> None:
        super().__init__(name, dtype)
        self._resting, self._resting_own = CellMemory(), self._own

    def swap(self) -> None:
        """Exchange the two memories; to be called before a backward."""
        self.memory, self._resting = self._resting, self.memory
        self._own, self._resting_own = self._resting_own, self._own

    def alias(self, array: Array) -> None:
        """Copy `array`, since the memory of another cell is not double-buffered."""
        np.copyto(self.reserve(array.shape), array)

    def drop(self) -> None:
        """Keep both memories: a gradient may still be read outside."""


class Scratch(Cell):
    """Memory that all ops of a thread share: valid until the next `reserve` of the thread."""

    __slots__ = ("_of_thread",)

    def __init__(self, dtype: Any) -> None:
        super().__init__("scratch", dtype)
        self._of_thread = threading.local()

    def reserve(self, shape: Shape) -> Array:
        memory = getattr(self._of_thread, "memory", None)
        if memory is None:
            memory = self._of_thread.memory = CellMemory()
        return memory.array(shape, self.dtype)


@dataclass
class StepContext:
    """Position of a run: a random number is a function of (seed of the op, step, example, place).

    `step` counts the batches run before this one, `first_example` the examples of the batch in
    replicas before this one. `loss_gradient` is d loss / d loss, the weight of a replica."""

    step: int = 0
    first_example: int = 0
    loss_gradient: float = 1.0
