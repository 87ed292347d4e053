"""The memory behind vars at run time.

Ops are compiled against cells, not names: a step then costs no look-ups by name. An op reserves the
memory of its outputs anew in every step, and gets the same memory again unless the batch has grown.
An op never writes into its inputs, so an output may share the memory of an input; which op types do
is declared (`compute.table.SHARING`), because memory is planned by it.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

from psrt.core.types import I64, Array, Shape

_NOTHING: Array = np.empty(0)
_LINE_BYTES = 64
_GROWTH = 1.25  # ragged batches differ a little in size: a new one a step would be a new memory


class CellMemory:
    """Bytes to write values into: of one cell, or of several whose lives do not overlap.

    Starts at a cache line. `owner` is the array that owns them, the base of all that is handed out.
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
        """Give the memory back; the next value makes new."""
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
    """One var: its value in this step, and for a ragged one where each example begins.

    `value` is C-contiguous unless the op that wrote it shared a part of something larger. A cell
    that `follows` another has its offsets: a ragged var computed from a ragged var element by
    element. `shares` says whether the value may be a part of another cell's.
    """

    __slots__ = ("_offsets", "_own", "dtype", "follows", "memory", "name", "shares", "value")

    def __init__(self, name: str, dtype: Any, shares: bool = False) -> None:
        self.name = name
        self.dtype = np.dtype(dtype)
        self.shares = shares
        self.value = self._own = _NOTHING
        self.follows: Cell | None = None
        self._offsets: I64 | None = None
        self.memory = CellMemory()

    @property
    def offsets(self) -> I64 | None:
        """Where each example begins among the elements, (examples + 1,); None if not ragged."""
        return self._offsets if self.follows is None else self.follows.offsets

    @offsets.setter
    def offsets(self, offsets: I64 | None) -> None:
        self._offsets = offsets

    def reserve(self, shape: Shape) -> Array:
        """Memory of `shape` to write the value into; what stands there is stale."""
        own = self._own
        if own.shape != shape or own.base is not self.memory.owner:
            own = self._own = self.memory.array(shape, self.dtype)
        self.value = own
        return own

    def would_hand_out(self, array: Array) -> bool:
        """Whether `reserve` returns this very array when it is asked for its shape."""
        return self._own is array and array.base is self.memory.owner

    def share(self, array: Array) -> None:
        """Let the value be an array that another cell owns."""
        assert self.shares, f"{self.name} is written by an op type that is not in SHARING"
        self.value = array

    def drop(self) -> None:
        """Forget value and memory until the next step."""
        self.value = self._own = _NOTHING
        self.memory.drop()


class GradientCell(Cell):
    """The gradient of a parameter, with two memories that can take turns.

    After a `swap`, what was handed out after one backward stays as it is during the next one, so a
    communicator may still read it while the trainer computes.
    """

    __slots__ = ("_resting", "_resting_own")

    def __init__(self, name: str, dtype: Any) -> None:
        super().__init__(name, dtype)
        self._resting, self._resting_own = CellMemory(), self._own

    def swap(self) -> None:
        """Before a backward: write into the memory of the backward before the last."""
        self.memory, self._resting = self._resting, self.memory
        self._own, self._resting_own = self._resting_own, self._own

    def share(self, array: Array) -> None:
        """Another cell's memory does not take turns: copy."""
        np.copyto(self.reserve(array.shape), array)

    def drop(self) -> None:
        """A gradient may still be read outside: its memories stay."""


class Scratch(Cell):
    """Memory that all ops share, one for each thread: use what `reserve` returned, at once."""

    __slots__ = ("_of_thread",)

    def __init__(self, dtype: Any) -> None:
        super().__init__("scratch", dtype)
        self._of_thread = threading.local()

    @property
    def owner(self) -> Array | None:
        """The array that owns the memory of this thread."""
        memory: CellMemory | None = getattr(self._of_thread, "memory", None)
        return None if memory is None else memory.owner

    def reserve(self, shape: Shape) -> Array:
        memory = getattr(self._of_thread, "memory", None)
        if memory is None:
            memory = self._of_thread.memory = CellMemory()
        return memory.array(shape, self.dtype)
