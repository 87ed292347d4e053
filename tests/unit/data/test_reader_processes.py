"""Readers in processes: which examples come, whose error it was, and that no process is left."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing

import numpy as np
import pytest

import psrt
from psrt.core.errors import ConfigError, DataError

read = psrt.reader.multiprocess_reader


def numbers(*values: int) -> Callable[[], Iterator[int]]:
    return lambda: iter(values)


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    yield
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("use_pipe", [True, False])
def test_all_examples_of_all_readers_come_in_every_iteration(use_pipe: bool) -> None:
    reader = read([numbers(*range(500)), numbers(), numbers(*range(500, 503))], use_pipe)

    for _ in range(2):
        assert sorted(reader()) == list(range(503))


def test_readers_take_turns_as_long_as_they_have_examples() -> None:
    reader = read([numbers(1, 2, 3), numbers(10), numbers(20, 21)])

    assert list(reader()) == [1, 10, 20, 2, 21, 3]


def test_examples_are_what_readers_made_even_arrays() -> None:
    example = np.arange(6).reshape(2, 3), [1, 2], "text"

    ((array, list_, text),) = read([lambda: iter([example])])()

    np.testing.assert_array_equal(array, example[0])
    assert (list_, text) == ([1, 2], "text")


@pytest.mark.parametrize("use_pipe", [True, False])
def test_an_error_names_the_reader_and_its_line(use_pipe: bool) -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise OSError("the disk is gone")

    found: list[int] = []
    with pytest.raises(DataError, match=r"Reader 1 .* raised OSError: the disk is gone") as error:
        found.extend(read([numbers(*range(9)), failing], use_pipe)())
    assert 1 in found
    assert f"{os.path.basename(__file__)}, line" in error.value.message
    assert isinstance(error.value, ValueError)  # what Fluid raises


def test_a_killed_process_is_named() -> None:
    def killed() -> Iterator[int]:
        yield 1
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(DataError, match=r"Reader 0 .* exit code -9") as error:
        list(read([killed])())
    assert error.value.hint


def test_a_dropped_iteration_ends_its_processes() -> None:
    def endless() -> Iterator[int]:
        while True:
            yield 7

    with closing(read([endless, endless])()) as examples:
        assert next(examples) == 7
        assert len(multiprocessing.active_children()) == 2
    assert multiprocessing.active_children() == []


def test_none_is_no_example_and_there_is_a_reader() -> None:
    with pytest.raises(DataError, match="None in place of an example"):
        list(read([lambda: iter([None])])())
    with pytest.raises(ConfigError, match="list of readers"):
        read([])
