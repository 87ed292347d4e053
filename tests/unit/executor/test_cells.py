"""Cells reserve the memory of the step before, unless it has grown, swapped or been dropped."""

from __future__ import annotations

import threading

import numpy as np

from psrt.executor.memory import Cell, GradientCell, Scratch


def test_the_array_of_the_step_before_is_reserved_again() -> None:
    cell = Cell("x", np.float32)
    first = cell.reserve((4, 2))
    cell.value = np.zeros((4, 2), np.float32)

    assert cell.reserve((4, 2)) is first
    assert cell.value is first


def test_memory_that_another_cell_has_grown_is_taken_by_both() -> None:
    cell, other = Cell("x", np.float32), Cell("other", np.float32)
    other.memory = cell.memory
    first = cell.reserve((4, 2))
    other.reserve((100, 2))

    assert cell.reserve((4, 2)) is not first
    assert np.shares_memory(cell.value, other.value)


def test_dropped_memory_is_not_reserved_again() -> None:
    cell = Cell("x", np.float32)
    first = cell.reserve((4, 2))
    cell.drop()

    assert not np.shares_memory(cell.reserve((4, 2)), first)


def test_a_gradient_alternates_between_two_arrays() -> None:
    cell = GradientCell("x", np.float32)
    arrays = []
    for _ in range(4):
        cell.swap()
        arrays.append(cell.reserve((4, 2)))

    assert not np.shares_memory(arrays[0], arrays[1])
    assert arrays[2] is arrays[0]
    assert arrays[3] is arrays[1]


def test_each_thread_has_its_own_scratch() -> None:
    scratch, elsewhere = Scratch(np.float32), []
    here = scratch.reserve((4, 2))

    thread = threading.Thread(target=lambda: elsewhere.append(scratch.reserve((4, 2))))
    thread.start()
    thread.join()

    assert not np.shares_memory(here, elsewhere[0])
    assert np.shares_memory(here, scratch.reserve((4, 2)))
