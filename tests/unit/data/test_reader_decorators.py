"""Reader decorators: which examples come, in which order, and that their threads end."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

import psrt
from psrt.core.errors import ConfigError, DataError, DeadlineError
from psrt.data.python import read_ahead

decorators = psrt.reader
DEADLINE_S = 30.0


def numbers(n: int) -> Callable[[], Iterator[int]]:
    return lambda: iter(range(n))


def failing(after: int) -> Callable[[], Iterator[int]]:
    def read() -> Iterator[int]:
        yield from range(after)
        raise OSError("the disk is gone")

    return read


def reader_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("reader-")]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    assert reader_threads() == []


def test_batches_have_their_size_and_the_last_may_be_dropped() -> None:
    assert list(decorators.batch(numbers(5), 2)()) == [[0, 1], [2, 3], [4]]
    assert list(decorators.batch(numbers(5), 2, drop_last=True)()) == [[0, 1], [2, 3]]


def test_a_shuffle_moves_examples_within_its_buffer_only() -> None:
    random.seed(1)

    shuffled = list(decorators.shuffle(numbers(100), 50)())

    assert sorted(shuffled[:50]) == list(range(50))
    assert shuffled[:50] != list(range(50))
    assert sorted(shuffled) == list(range(100))


def test_readers_are_mapped_chained_and_cut() -> None:
    added = decorators.map_readers(lambda a, b: a + b, numbers(3), numbers(9))
    chained = decorators.chain(numbers(2), numbers(3))

    assert list(added()) == [0, 2, 4]
    assert list(chained()) == [0, 1, 0, 1, 2]
    assert list(decorators.firstn(numbers(9), 2)()) == [0, 1]


def test_composed_examples_are_laid_open() -> None:
    pairs = decorators.map_readers(lambda n: (n, -n), numbers(2))

    assert list(decorators.compose(numbers(2), pairs)()) == [(0, 0, 0), (1, 1, -1)]


def test_readers_of_unequal_length_are_not_composed() -> None:
    composed = decorators.compose(numbers(3), numbers(2))()

    with pytest.raises(decorators.ComposeNotAligned, match="reader 1 ended after 2 examples"):
        list(composed)
    shortest = decorators.compose(numbers(3), numbers(2), check_alignment=False)
    assert list(shortest()) == [(0, 0), (1, 1)]
    assert issubclass(decorators.ComposeNotAligned, DataError)


def test_a_cache_reads_once_and_not_before_it_is_needed() -> None:
    begun: list[int] = []

    def read() -> Iterator[int]:
        begun.append(1)
        yield from range(3)

    cached = decorators.cache(read)
    assert begun == []
    assert [list(cached()), list(cached())] == [[0, 1, 2]] * 2
    assert begun == [1]


@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_buffer_keeps_the_order_and_starts_anew(size: int) -> None:
    ahead = decorators.buffered(numbers(10), size)

    assert [list(ahead()), list(ahead())] == [list(range(10))] * 2


def test_none_is_an_example() -> None:
    assert list(decorators.buffered(lambda: [None, 1, None], 2)()) == [None, 1, None]


def test_an_error_comes_behind_the_examples_before_it() -> None:
    seen: list[int] = []

    with pytest.raises(OSError, match="disk is gone"):
        seen.extend(decorators.buffered(failing(after=2), 8)())
    with pytest.raises(OSError, match="disk is gone"):
        seen.extend(decorators.xmap_readers(int, failing(after=2), 2, 4, order=True)())

    assert seen in ([0, 1], [0, 1, 0, 1])


def test_a_consumer_that_stops_ends_the_threads_of_nested_readers() -> None:
    nested = decorators.buffered(decorators.buffered(numbers(10**9), 2), 2)
    mapped = decorators.xmap_readers(str, nested, 3, 4)

    with closing(mapped()) as examples:
        assert next(examples).isdigit()
        assert len(reader_threads()) == 6


@pytest.mark.parametrize("order", [True, False])
def test_every_example_is_mapped_once(order: bool) -> None:
    mapped = list(decorators.xmap_readers(lambda n: n * n, numbers(50), 4, 8, order)())

    assert sorted(mapped) == [n * n for n in range(50)]
    if order:
        assert mapped == sorted(mapped)


def test_workers_overtake_each_other_only_without_an_order() -> None:
    released = threading.Event()

    def mapper(n: int) -> int:
        if n == 0:
            assert released.wait(DEADLINE_S)
        return n

    examples = decorators.xmap_readers(mapper, numbers(5), 2, 2)()
    first = next(examples)
    released.set()
    rest = list(examples)

    assert first != 0
    assert sorted([first, *rest]) == [0, 1, 2, 3, 4]


def test_an_error_of_a_worker_comes_to_the_consumer() -> None:
    def mapper(n: int) -> float:
        return 1 / (3 - n)

    with pytest.raises(ZeroDivisionError):
        list(decorators.xmap_readers(mapper, numbers(9), 2, 4)())


def test_code_that_is_late_is_named_and_its_thread_ends_with_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(read_ahead, "_LEAVE_TIMEOUT_S", 0.0)
    released = threading.Event()

    def stuck() -> Iterator[int]:
        released.wait(DEADLINE_S)
        yield 1

    def slow(n: int) -> int:
        released.wait(DEADLINE_S)
        return n

    with pytest.raises(DeadlineError, match=r"stuck gave nothing within 0\.01 s"):
        list(decorators.buffered(stuck, 1, wait_timeout_s=0.01)())
    with pytest.raises(DeadlineError, match=r"slow gave nothing within 0\.5 s"):
        list(decorators.xmap_readers(slow, lambda: [1], 1, 1, wait_timeout_s=0.5)())
    assert "goes on until" in caplog.text
    released.set()
    for thread in threading.enumerate():
        if thread.name.startswith("reader-"):
            thread.join(DEADLINE_S)


@pytest.mark.parametrize("decorate", [decorators.batch, decorators.shuffle, decorators.buffered])
def test_sizes_below_one_are_refused(decorate: Callable[..., object]) -> None:
    with pytest.raises(ConfigError, match="1 or more, not 0"):
        decorate(numbers(3), 0)
    with pytest.raises(ConfigError, match=r"is an integer, not 1\.5"):
        decorate(numbers(3), 1.5)


def test_the_first_of_a_reader_are_none_or_more() -> None:
    assert list(decorators.firstn(numbers(3), 0)()) == []
    with pytest.raises(ConfigError, match="n of firstn is 0 or more, not -1"):
        decorators.firstn(numbers(3), -1)
