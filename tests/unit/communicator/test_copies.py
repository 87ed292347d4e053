"""Copies of arrays in memory that is used again once they have gone."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from psrt.communicator.requests.copies import Copies
from psrt.core.types import Array

CHUNK = 4096

pytestmark = pytest.mark.usefixtures("cheap_collections")


def copies(kept_chunks: int = 100) -> Copies:
    return Copies(kept_chunks * CHUNK, CHUNK)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(7, dtype=np.int64),
        np.arange(12, dtype=np.float32).reshape(3, 4),
        np.arange(12, dtype=np.float16).reshape(3, 4)[:, ::2],
        np.empty((0, 3), np.float32),
        np.array(5, np.int32),
        np.arange(CHUNK, dtype=np.uint8),
        np.arange(CHUNK + 1, dtype=np.float32),
    ],
    ids=lambda array: f"{array.dtype}-{array.shape}",
)
def test_a_copy_has_the_values_and_is_not_changed_with_its_array(array: Array) -> None:
    expected = array.copy()

    copy = copies().copy(array)
    array[...] = 0

    np.testing.assert_array_equal(copy, expected)
    assert (copy.dtype, copy.shape) == (expected.dtype, expected.shape)
    assert copy.flags.c_contiguous


def test_copies_that_are_held_keep_their_values_however_many_come_behind_them() -> None:
    made = copies()

    held = [made.copy(np.full(100, number, np.int64)) for number in range(50)]
    views = [copy[10:20] for copy in held[::7]]
    del held[::7]
    held += [made.copy(np.full(100, number, np.int64)) for number in range(100, 150)]

    for number, view in zip(range(0, 50, 7), views, strict=True):
        np.testing.assert_array_equal(view, number)
    assert sorted({int(copy[0]) for copy in held}) == sorted(
        [number for number in range(50) if number % 7] + list(range(100, 150))
    )
    assert all((copy == copy[0]).all() for copy in held)


def test_memory_of_copies_that_have_gone_is_used_again() -> None:
    made = copies()
    array = np.ones(CHUNK // 4, np.uint8)
    sizes = []
    for _ in range(5):
        held = [made.copy(array) for _ in range(40)]
        sizes.append(made.size_bytes)
        del held
        gc.collect()

    assert sizes[0] == 10 * CHUNK
    assert set(sizes[1:]) <= {10 * CHUNK, 11 * CHUNK}


def test_memory_of_large_copies_is_used_again_by_those_of_about_their_size() -> None:
    made = copies()
    sizes = []
    for shorter in range(0, 300, 100):
        held = [made.copy(np.ones(n * CHUNK - shorter, np.uint8)) for n in (4, 8, 4)]
        sizes.append(made.size_bytes)
        del held

    assert sizes == [16 * CHUNK] * 3


def test_copies_of_ever_new_sizes_do_not_take_more_memory_than_may_be_kept() -> None:
    made = copies(kept_chunks=100)
    for size in range(2 * CHUNK, 40 * CHUNK, CHUNK // 2):
        held = [made.copy(np.ones(size, np.uint8)) for _ in range(2)]
        assert all(int(each.sum()) == size for each in held)
        assert made.size_bytes <= 100 * CHUNK
        del held


def test_copies_and_their_views_are_told_from_other_arrays() -> None:
    made = copies()
    array = np.arange(6, dtype=np.float32)
    copy, large = made.copy(array), made.copy(np.ones(2 * CHUNK, np.uint8))

    assert [made.has(each) for each in (copy, copy[2:4], copy.reshape(2, 3)[1], large[5:])] == (
        [True] * 4
    )
    assert [made.has(each) for each in (array, array[1:], copies().copy(array))] == [False] * 3


def test_arrays_of_any_values_are_apart_and_count_as_made_here() -> None:
    made = copies()
    first = made.empty((3, 5), np.dtype(np.float32))
    second = made.empty((7,), np.dtype(np.int64))
    first[:], second[:] = 1.5, 2**40

    assert (first.tolist(), second.tolist()) == ([[1.5] * 5] * 3, [2**40] * 7)
    assert [made.has(first), made.has(second[3:])] == [True, True]


def test_free_memory_beyond_what_may_be_kept_is_returned() -> None:
    made = copies(kept_chunks=3)
    array = np.ones(CHUNK, np.uint8)
    held = [made.copy(array) for _ in range(10)]
    assert made.size_bytes == 10 * CHUNK

    del held
    made.copy(array)

    assert made.size_bytes == 3 * CHUNK
