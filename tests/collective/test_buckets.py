"""Gradients that travel together: every plan of small sizes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from psrt.collective.buckets import plan_buckets
from psrt.collective.reducer import GradientReducer, StepCounts
from psrt.core.types import F32


@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_every_plan_keeps_the_order_and_fills_no_bucket_over_its_limit(most: int) -> None:
    for count in range(1, 5):
        for sizes in itertools.product((1, 2, 4), repeat=count):
            named = [(f"g{i}", size) for i, size in enumerate(sizes)]

            buckets = plan_buckets(named, most)

            assert [name for each in buckets for name in each.names] == [name for name, _ in named]
            for bucket in buckets:
                assert bucket.size <= most or len(bucket.names) == 1
                ends = [*bucket.starts[1:], bucket.size]
                assert [e - s for s, e in zip(bucket.starts, ends, strict=True)] == [
                    dict(named)[name] for name in bucket.names
                ]
            for one, other in itertools.pairwise(buckets):
                assert one.size + dict(named)[other.names[0]] > most


def test_without_gradients_there_is_one_empty_bucket() -> None:
    assert [(bucket.names, bucket.size) for bucket in plan_buckets([], 3)] == [((), 0)]


class Journal:
    """A buffer that writes down when it travels, and doubles its values: two equal processes."""

    def __init__(self, travelled: list[int], number: int, size: int) -> None:
        self.values: F32 = np.zeros(size, np.float32)
        self._travelled, self._number = travelled, number

    def begin(self) -> None:
        self._travelled.append(self._number)

    def end(self) -> None:
        self.values *= 2

    def broadcast(self) -> None:
        raise AssertionError


def reducer(shapes: dict[str, tuple[int, ...]], most: int) -> tuple[GradientReducer, list[int]]:
    travelled: list[int] = []
    numbers = itertools.count()
    return (
        GradientReducer(
            None,  # type: ignore[arg-type]
            shapes.items(),
            4 * most,
            lambda _, size: Journal(travelled, next(numbers), size),  # type: ignore[arg-type, return-value]
        ),
        travelled,
    )


def test_buckets_travel_in_one_order_as_soon_as_they_are_full() -> None:
    shapes = {"a": (2,), "b": (2,), "c": (4,), "d": (1, 3)}
    for order in itertools.permutations(shapes):
        reduced, travelled = reducer(shapes, 4)
        for place, name in enumerate(order):
            reduced.offer(name, np.full(shapes[name], ord(name), np.float32))
            given = set(order[: place + 1])
            full = [{"a", "b"} <= given, "c" in given, "d" in given]
            assert travelled == list(range([*full, False].index(False)))

        reduced.start_all(trained=True, goes_on=True)
        tally, means = reduced.end()

        assert tally == StepCounts(2, 2)
        for name, values in means.items():
            np.testing.assert_array_equal(values, np.full(shapes[name], ord(name)))


def test_a_process_without_a_gradient_takes_part_with_zeros() -> None:
    reduced, travelled = reducer({"a": (2,), "c": (4,)}, 4)
    reduced.offer("a", np.ones(2, np.float32))
    reduced.offer("c", np.ones(4, np.float32))
    reduced.start_all(trained=True, goes_on=True)
    reduced.end()

    reduced.start_all(trained=False, goes_on=False)
    tally, means = reduced.end()

    assert travelled == [0, 1, 0, 1]
    assert tally == StepCounts(0, 0)
    assert not any(values.any() for values in means.values())
