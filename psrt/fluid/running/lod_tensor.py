"""Fluid's `LoDTensor`: an array, and the lengths of its sequences by level.

`recursive_seq_lens` has one list per level, outermost first: `[[2, 1], [3, 4, 5]]` are two groups,
of two and of one sequence, and the sequences have 3, 4 and 5 elements. `lod` holds the same as
offsets. psrt computes with one level: the innermost lengths of a fed tensor are those of its var.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from psrt.core.errors import DataError
from psrt.core.tensors import Ragged
from psrt.core.types import Array
from psrt.fluid.names import CPUPlace

Lengths: TypeAlias = Sequence[Sequence[int]]


class LoDTensor:
    """An array that may consist of sequences; `np.array(tensor)` copies it."""

    def __init__(self, array: Any = None, recursive_seq_lens: Lengths = ()) -> None:
        self._held = None if array is None else np.asarray(array)
        self._lengths = [list(map(int, level)) for level in recursive_seq_lens]

    @classmethod
    def of(cls, value: Any) -> LoDTensor:
        """Return a tensor of an array, of a `Ragged`, or the tensor itself."""
        if isinstance(value, LoDTensor):
            return value
        if isinstance(value, Ragged):
            values = value.values.reshape(-1, 1) if value.values.ndim == 1 else value.values
            return cls(values, [np.diff(value.offsets).tolist()])
        return cls(value)

    def set(self, array: Any, place: Any = None) -> None:
        """Store a copy of `array`; `place` has no effect."""
        self._held = np.array(array)

    def shape(self) -> list[int]:
        """Return the shape as a list."""
        return list(self._array.shape)

    def lod(self) -> list[list[int]]:
        """Return the offsets of each level."""
        return [[0, *np.cumsum(level).tolist()] for level in self._lengths]

    def set_lod(self, lod: Lengths) -> None:
        """Set the offsets of each level; each begins with 0."""
        self._lengths = [np.diff(level).tolist() for level in lod]

    def recursive_sequence_lengths(self) -> list[list[int]]:
        """Return the lengths of each level."""
        return [list(level) for level in self._lengths]

    def set_recursive_sequence_lengths(self, recursive_sequence_lengths: Lengths) -> None:
        """Set the lengths of each level."""
        self._lengths = [list(map(int, level)) for level in recursive_sequence_lengths]

    def has_valid_recursive_sequence_lengths(self) -> bool:
        """Return whether each level has as many sequences as the level above it counts."""
        counts = [len(level) for level in self._lengths[1:]] + [len(self._array)]
        sums = [sum(level) for level in self._lengths]
        return sums == (counts if self._lengths else [])

    def ragged(self) -> Ragged:
        """Return the elements with the innermost lengths, one an example without any.

        Raises `DataError` for lengths that do not add up.
        """
        array = self._array
        lengths = self._lengths[-1] if self._lengths else [1] * len(array)
        if sum(lengths) != len(array):
            raise DataError(
                f"A LoDTensor of {len(array)} elements has sequences of {sum(lengths)} in all."
            )
        return Ragged(array, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = self._array if dtype is None else self._array.astype(dtype)
        return array.copy() if copy is not False else array

    def __getitem__(self, index: Any) -> Any:
        return self._array[index]

    def __len__(self) -> int:
        return len(self._array)

    def __bool__(self) -> bool:
        """Return whether it holds an array."""
        return self._held is not None

    def _place(self) -> CPUPlace:
        return CPUPlace()

    def _get_dims(self) -> list[int]:
        return self.shape()

    def __str__(self) -> str:
        return f"LoDTensor(lod {self.lod()}, {self._array})"

    @property
    def _array(self) -> Array:
        if self._held is None:
            raise DataError("A LoDTensor was read before it was set.", hint="Call set(array).")
        return self._held


class LoDTensorArray(list[LoDTensor]):
    """A list of tensors, such as those of one batch."""

    def append(self, tensor: Any) -> None:
        """Add a tensor, or an array as one."""
        super().append(LoDTensor.of(tensor))


def create_lod_tensor(data: Any, recursive_seq_lens: Lengths, place: Any = None) -> LoDTensor:
    """Return a tensor of an array, a list of sequences or a tensor, and the lengths by level.

    Scalars in lists become rows of one. Raises `DataError` for lengths that do not add up.
    """
    if isinstance(data, list):
        rows = [np.asarray(part).reshape(len(part), -1) for part in data]
        given = [len(part) for part in rows]
        if list(recursive_seq_lens[-1]) != given:
            raise DataError(
                f"create_lod_tensor was given sequences of {given} elements and the lengths "
                f"{list(recursive_seq_lens[-1])}."
            )
        data = np.concatenate(rows)
    made = LoDTensor(data, recursive_seq_lens)
    if not made.has_valid_recursive_sequence_lengths():
        raise DataError(
            f"create_lod_tensor was given {len(made)} elements, which the lengths "
            f"{recursive_seq_lens} do not divide.",
            hint="The lengths of each level add up to the number of sequences in the next one.",
        )
    return made


def create_random_int_lodtensor(
    recursive_seq_lens: Lengths, base_shape: Sequence[int], place: Any, low: int, high: int
) -> LoDTensor:
    """Return random integers from `low` to `high`, of `base_shape` per element."""
    count = sum(recursive_seq_lens[-1])
    # Fluid draws from numpy's global generator, which users seed.
    data = np.random.randint(low, high + 1, [count, *base_shape]).astype("int64")
    return create_lod_tensor(data, recursive_seq_lens, place)


__all__ = ["LoDTensor", "LoDTensorArray", "create_lod_tensor", "create_random_int_lodtensor"]
