"""The memory behind vars at run time.

Ops are compiled against cells, not names: a step then costs no look-ups by name. An op reserves the
memory of its outputs anew in every step, and gets the same memory again unless the batch has grown.
An op never writes into its inputs, so an output may share the memory of an input.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from psrt.core.types import I64, Array, Shape

_NOTHING: Array = np.empty(0)


class Cell:
    """One var: its value in this step, and for a ragged one where each example begins.

    `value` is C-contiguous unless the op that wrote it shared a part of something larger. A cell
    that `follows` another has its offsets: a ragged var computed from a ragged var element by
    element.
    """

    __slots__ = ("_memory", "_offsets", "dtype", "follows", "name", "value")

    def __init__(self, name: str, dtype: Any) -> None:
        self.name = name
        self.dtype = np.dtype(dtype)
        self.value: Array = _NOTHING
        self.follows: Cell | None = None
        self._offsets: I64 | None = None
        self._memory: Array = np.empty(0, self.dtype)

    @property
    def offsets(self) -> I64 | None:
        """Where each example begins among the elements, (examples + 1,); None if not ragged."""
        return self._offsets if self.follows is None else self.follows.offsets

    @offsets.setter
    def offsets(self, offsets: I64 | None) -> None:
        self._offsets = offsets

    def reserve(self, shape: Shape) -> Array:
        """Memory of `shape` to write the value into; what stands there is stale."""
        if self.value.shape == shape and self.value.base is self._memory:
            return self.value
        size = math.prod(shape)
        if size > self._memory.size:
            self._memory = np.empty(size, self.dtype)
        self.value = self._memory[:size].reshape(shape)
        return self.value

    def share(self, array: Array) -> None:
        """Let the value be an array that another cell owns."""
        self.value = array


class GradientCell(Cell):
    """The gradient of a parameter, with two memories that take turns.

    What was handed out after one backward stays as it is during the next one, so a communicator may
    still read it while the trainer computes.
    """

    __slots__ = ("_resting",)

    def __init__(self, name: str, dtype: Any) -> None:
        super().__init__(name, dtype)
        self._resting: Array = np.empty(0, self.dtype)

    def swap(self) -> None:
        """Before each backward: write into the memory of the backward before the last."""
        self._memory, self._resting = self._resting, self._memory

    def share(self, array: Array) -> None:
        """Another cell's memory does not take turns: copy."""
        np.copyto(self.reserve(array.shape), array)
