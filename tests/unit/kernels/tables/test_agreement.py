"""Geo's arithmetic against its plain-numpy twins, to the bit, and its passes over rows."""

from __future__ import annotations

import numpy as np
import pytest

from psrt.kernels.tables import agreement

f4 = np.float32
D = 5


def give(train: np.ndarray, old: np.ndarray, trainers: int) -> tuple[np.ndarray, np.ndarray]:
    """The change that goes out, and what is agreed on then."""
    delta = (train - old) / f4(trainers)
    return delta, old + delta


def take(train: np.ndarray, old: np.ndarray, agreed: np.ndarray) -> np.ndarray:
    """The values of a trainer after an answer of `agreed` values."""
    return np.where(train == old, agreed, train + (agreed - old))


def numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(f4)


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("trainers", [1, 2, 3])
def test_a_block_gives_its_share_and_agrees_on_it(size: int, trainers: int) -> None:
    train, old = numbers(1, size), numbers(2, size)
    delta, agreed = give(train, old, trainers)
    out = np.empty_like(train)

    changed = agreement.give_block_(train, old, trainers, out)

    assert changed
    np.testing.assert_array_equal(out, delta)
    np.testing.assert_array_equal(old, agreed)


def test_a_block_takes_what_others_did_beside_its_own_progress() -> None:
    train, old, agreed = numbers(1, 1000), numbers(2, 1000), numbers(3, 1000)
    train[::3] = old[::3]
    expected = take(train, old, agreed)

    agreement.take_block_(train, old, agreed)

    np.testing.assert_array_equal(train, expected)
    np.testing.assert_array_equal(train[::3], agreed[::3])
    np.testing.assert_array_equal(old, agreed)


@pytest.mark.parametrize(("change", "expected"), [(0.0, False), (1e-30, True), (np.nan, True)])
def test_whether_a_block_has_changed(change: float, expected: bool) -> None:
    old = numbers(1, 100)
    old[70] = 0
    train = old.copy()
    train[70] = change

    assert agreement.give_block_(train, old, 2, np.empty_like(train)) == expected


def test_rows_give_their_share_and_those_that_did_not_change_are_left_out() -> None:
    slab = numbers(1, 40, 4 + 3 * D + 1)
    slab.view(np.int64)[:, 1] = np.arange(1000, 1040)
    at, old_at = 4, 4 + 2 * D
    slab[5, at : at + D] = slab[5, old_at : old_at + D]
    before, slots = slab.copy(), np.array([3, 5, 39, 0], np.int32)
    ids, deltas = np.empty(4, np.int64), np.empty((4, D), f4)

    count = agreement.give_rows_(slab, at, old_at, slots, 3, ids, deltas)

    moved = [3, 39, 0]
    delta, agreed = give(before[moved, at : at + D], before[moved, old_at : old_at + D], 3)
    assert count == 3
    assert ids[:3].tolist() == [1003, 1039, 1000]
    np.testing.assert_array_equal(deltas[:3], delta)
    np.testing.assert_array_equal(slab[moved, old_at : old_at + D], agreed)
    slab[moved] = before[moved]
    np.testing.assert_array_equal(slab, before)


def test_rows_take_what_others_did_beside_their_own_progress() -> None:
    slab, agreed = numbers(1, 40, 2 + 3 * D), numbers(2, 3, D)
    at, old_at = 2, 2 + 2 * D
    before, slots = slab.copy(), np.array([7, 0, 39], np.int32)

    agreement.take_rows_(slab, at, old_at, slots, agreed)

    train, old = before[slots, at : at + D], before[slots, old_at : old_at + D]
    np.testing.assert_array_equal(slab[slots, at : at + D], take(train, old, agreed))
    np.testing.assert_array_equal(slab[slots, old_at : old_at + D], agreed)
    np.testing.assert_array_equal(slab[slots, 2 + D : old_at], before[slots, 2 + D : old_at])


def test_a_row_is_noted_once_however_often_it_is_touched() -> None:
    is_noted, noted, count = np.zeros(9, np.uint8), np.empty(10, np.int32), 0

    for slots in ([3, 1], [1, 8], [3], [0, 1, 8]):
        count = agreement.note_(np.array(slots, np.int32), is_noted, noted, count)

    assert noted[:count].tolist() == [3, 1, 8, 0]
    assert np.flatnonzero(is_noted).tolist() == [0, 1, 3, 8]
