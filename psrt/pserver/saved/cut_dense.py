"""A dense parameter of a cut: ranges of its elements, from blocks of any bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from psrt.core.specs import DenseTableSpec, from_plain
from psrt.core.types import F32
from psrt.pserver.checkpoints import SavedCut, StoredPages
from psrt.storage.failures import damaged


class CutDense:
    """One dense parameter of a cut, over all of its blocks; `spec` is that of the whole."""

    def __init__(self, cut: SavedCut, stored: Sequence[StoredPages]) -> None:
        self._cut, self._stored = cut, stored
        spec: DenseTableSpec = from_plain(stored[-1].facts["spec"])
        size = math.prod(spec.shape)
        self.spec = replace(spec, name=spec.parameter, offset=0, size=size, section=0)
        self.has_state = True

    @property
    def version(self) -> int:
        return max(int(each.facts["version"]) for each in self._stored)

    @property
    def size_bytes(self) -> int:
        """Bytes of values and optimizer state."""
        return 4 * self.spec.size * (1 + self.vectors)

    @cached_property
    def vectors(self) -> int:
        """Vectors of the optimizer."""
        for stored in self._stored:
            for number in stored.numbers:
                with self._cut.opened(stored.file) as reader:
                    return int(reader.shapes(number)["state"][0])
        return 0

    def values(self, first: int, end: int) -> F32:
        """Elements `first` to `end` − 1 (n,) of the flat parameter."""
        return self._read(first, end, None)

    def state(self, first: int, end: int) -> F32:
        """The optimizer's vectors (vectors, n) for elements `first` to `end` − 1."""
        vectors = [self.vector(number, first, end) for number in range(self.vectors)]
        return np.array(vectors, np.float32).reshape(len(vectors), end - first)

    def vector(self, number: int, first: int, end: int) -> F32:
        """Elements `first` to `end` − 1 (n,) of one vector of the optimizer."""
        return self._read(first, end, number)

    def _read(self, first: int, end: int, vector: int | None) -> F32:
        """Values, or one vector of the optimizer; later blocks replace earlier ones.

        Raises `StorageError` if no block has some of the elements.
        """
        out, is_known = np.empty(end - first, np.float32), np.zeros(end - first, bool)
        for stored in self._stored:
            offset, size = stored.facts["spec"]["offset"], stored.facts["spec"]["size"]
            low, high = max(first, offset), min(end, offset + size)
            for number in stored.numbers if low < high else ():
                start = low - offset + (vector or 0) * size
                name = "values" if vector is None else "state"
                with self._cut.opened(stored.file) as reader:
                    found = reader.elements(number, name, start, start + high - low)
                out[low - first : high - first] = found
                is_known[low - first : high - first] = True
        if not is_known.all():
            missing = first + int(np.flatnonzero(~is_known)[0])
            raise damaged(
                self._stored[0].file["name"],
                f"no block of its cut has element {missing} of {self.spec.parameter}",
            )
        return out
