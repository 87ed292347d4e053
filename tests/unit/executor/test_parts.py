"""Arrays cut for several threads."""

from __future__ import annotations

import itertools

import pytest

from psrt.executor.compute.parts import SMALL, part_of


@pytest.mark.parametrize("width", [1, 3, 16, 400])
@pytest.mark.parametrize("of", [1, 2, 3, 7])
@pytest.mark.parametrize("size", [0, 1, SMALL - 1, SMALL, 171_601])
def test_parts_follow_one_another_and_are_all_of_it(size: int, of: int, width: int) -> None:
    count = size // width

    parts = [part_of(count, number, of, width) for number in range(of)]

    assert parts[0].start == 0
    assert list(itertools.accumulate(part.stop - part.start for part in parts))[-1] == count
    if count * width >= SMALL:
        assert all(before.stop == after.start for before, after in itertools.pairwise(parts))
        longest, shortest = (f(p.stop - p.start for p in parts) for f in (max, min))
        assert longest - shortest <= of * max(1, 16 // width)


def test_a_small_array_is_one_part() -> None:
    assert part_of(SMALL - 1, 0, 2) == slice(0, SMALL - 1)
    assert part_of(SMALL - 1, 1, 2) == slice(0, 0)


def test_no_two_parts_share_a_cache_line() -> None:
    assert all(part_of(10_007, number, 3).start % 16 == 0 for number in range(3))
