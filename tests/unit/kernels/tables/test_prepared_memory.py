"""Memory that is made before rows reach it."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest

from psrt.kernels.tables import growable_memory
from psrt.kernels.tables.growable_memory import AHEAD_BYTES, LARGE_BYTES, Slab

WORDS = 20
ROW_BYTES = WORDS * 4


def slab_of(size_bytes: int) -> Slab:
    """A slab with rows of that many bytes, and room for half as many again."""
    slab, rows = Slab(WORDS), size_bytes // ROW_BYTES
    slab.reserve(rows * 3 // 4)
    slab.reserve(rows)
    return slab


def test_a_small_slab_needs_nothing_ahead() -> None:
    assert not slab_of(LARGE_BYTES // 4).is_short


def test_a_large_slab_is_short_until_it_is_prepared() -> None:
    slab = slab_of(LARGE_BYTES)
    assert slab.is_short

    slab.prepare()

    assert not slab.is_short


def test_it_is_short_again_when_rows_come_near_the_end_of_what_is_there() -> None:
    slab = slab_of(LARGE_BYTES)
    slab.prepare()

    slab.reserve((LARGE_BYTES + AHEAD_BYTES // 4) // ROW_BYTES)
    assert not slab.is_short
    slab.reserve((LARGE_BYTES + AHEAD_BYTES * 3 // 4) // ROW_BYTES)
    assert slab.is_short


def test_nothing_is_made_behind_the_end_of_the_mapping() -> None:
    slab = slab_of(LARGE_BYTES)

    slab.reserve(len(slab.rows))
    slab.prepare()

    assert not slab.is_short


def test_preparing_leaves_rows_as_they_are() -> None:
    slab = slab_of(LARGE_BYTES)
    slab.rows[:] = 3.0

    slab.reserve(2 * len(slab.rows))
    slab.prepare()

    np.testing.assert_array_equal(slab.rows[: LARGE_BYTES // ROW_BYTES], 3.0)


def test_memory_that_was_given_back_is_prepared_again() -> None:
    slab = slab_of(2 * LARGE_BYTES)
    slab.prepare()

    slab.trim(LARGE_BYTES // ROW_BYTES)

    assert slab.is_short


def test_a_system_that_refuses_leaves_it_to_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growable_memory, "_POPULATE_WRITE", 9999)
    slab = slab_of(LARGE_BYTES)

    slab.prepare()

    assert not slab.is_short
    slab.rows[:] = 1.0


def test_memory_is_made_for_the_rows_that_are_asked_for() -> None:
    slab = slab_of(2 * LARGE_BYTES)

    slab.make(LARGE_BYTES // ROW_BYTES)

    assert present_pages(slab) == LARGE_BYTES // mmap.PAGESIZE


def present_pages(slab: Slab) -> int:
    """Pages of a slab that the system has made."""
    flags = np.zeros(slab.rows.nbytes // mmap.PAGESIZE, np.uint8)
    address = ctypes.c_void_p(slab.rows.ctypes.data)
    size = ctypes.c_size_t(len(flags) * mmap.PAGESIZE)
    assert ctypes.CDLL(None).mincore(address, size, ctypes.c_void_p(flags.ctypes.data)) == 0
    return int(np.count_nonzero(flags & 1))
