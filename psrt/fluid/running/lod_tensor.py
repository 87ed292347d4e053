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
from psrt.data.slots import ends_of
from psrt.fluid.names import CPUPlace, VarType, dtype_number
from psrt.graph.derived import lengths_name

Lengths: TypeAlias = Sequence[Sequence[int]]


class LengthsError(DataError, AssertionError):
    """Lengths of sequences do not add up; Fluid asserts that they do."""


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
        """Set the offsets of each level, which begin with 0.

        Raises `DataError` for offsets of lengths that do not add up.
        """
        if any(list(level[:1]) != [0] for level in lod):
            raise LengthsError(f"A lod was set whose levels do not all begin with 0: {list(lod)}.")
        self.set_recursive_sequence_lengths([np.diff(level).tolist() for level in lod])

    def recursive_sequence_lengths(self) -> list[list[int]]:
        """Return the lengths of each level."""
        return [list(level) for level in self._lengths]

    def set_recursive_sequence_lengths(self, recursive_sequence_lengths: Lengths) -> None:
        """Set the lengths of each level.

        Raises `DataError` unless each level has as many sequences as the level above it counts, and
        the array, once it is set, as many elements as the innermost.
        """
        lengths = [list(map(int, level)) for level in recursive_sequence_lengths]
        if not _add_up(lengths, len(self._array) if self else None):
            elements = f"of {len(self._array)} elements " if self else ""
            raise LengthsError(
                f"A LoDTensor {elements}was given the lengths {lengths}, which do not add up.",
                hint="The lengths of each level add up to the number of sequences in the next one.",
            )
        self._lengths = lengths

    def has_valid_recursive_sequence_lengths(self) -> bool:
        """Return whether each level has as many sequences as the level above it counts."""
        return _add_up(self._lengths, len(self._array) if self else None)

    def ragged(self) -> Ragged:
        """Return the elements with the innermost lengths, one an example without any.

        Raises `DataError` for lengths that do not add up.
        """
        array = self._array
        lengths = self._lengths[-1] if self._lengths else [1] * len(array)
        if sum(lengths) != len(array):
            raise LengthsError(
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

    def _is_initialized(self) -> bool:
        return bool(self)

    def _place(self) -> CPUPlace:
        return CPUPlace()

    def _dtype(self) -> VarType:
        return dtype_number(self._array.dtype)

    def _get_float_element(self, index: int) -> float:
        return float(self._array.flat[index])

    def _set_float_element(self, index: int, value: float) -> None:
        self._array.flat[index] = value

    _get_double_element, _set_double_element = _get_float_element, _set_float_element

    def _to_dlpack(self) -> Any:
        return self._array.__dlpack__()

    def _get_dims(self) -> list[int]:
        return self.shape()

    def __str__(self) -> str:
        return f"LoDTensor(lod {self.lod()}, {self._array})"

    @property
    def _array(self) -> Array:
        if self._held is None:
            raise DataError("A LoDTensor was read before it was set.", hint="Call set(array).")
        return self._held


def _add_up(lengths: list[list[int]], elements: int | None) -> bool:
    """True if each level counts the sequences of the next, and the innermost all `elements`."""
    if any(length < 0 for level in lengths for length in level):
        return False
    ends = [] if elements is None or not lengths else [elements]
    counts = [len(level) for level in lengths[1:]] + ends
    return all(sum(level) == count for level, count in zip(lengths, counts, strict=False))


def nested_feed(name: str, given: Any, inner: Array | Ragged) -> dict[str, Array | Ragged]:
    """Return the feed of a var of lists of lists: elements by outer list, and inner lengths.

    `inner` has the innermost lists of `given`; without outer ones each is a list of one.
    """
    assert isinstance(inner, Ragged), name
    lengths = np.diff(inner.offsets)
    levels = given.recursive_sequence_lengths() if isinstance(given, LoDTensor) else []
    outer = ends_of(np.array(levels[-2] if len(levels) > 1 else [1] * len(lengths), np.int64))
    return {
        name: Ragged(inner.values, inner.offsets[outer]),
        lengths_name(name): Ragged(lengths, outer),
    }


def from_dlpack(dltensor: Any) -> LoDTensor:
    """Return a tensor over the memory of a DLPack capsule, which is used once."""
    return LoDTensor(np.from_dlpack(_Exported(dltensor)))


class _Exported:
    """A capsule in the form that numpy imports."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # a CPU, the first


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
            raise LengthsError(
                f"create_lod_tensor was given sequences of {given} elements and the lengths "
                f"{list(recursive_seq_lens[-1])}."
            )
        data = np.concatenate(rows)
    made = LoDTensor(data, recursive_seq_lens)
    if not made.has_valid_recursive_sequence_lengths():
        raise LengthsError(
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


__all__ = ["LengthsError", "LoDTensor", "LoDTensorArray", "create_lod_tensor"]
__all__ += ["create_random_int_lodtensor", "from_dlpack", "nested_feed"]
