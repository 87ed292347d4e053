"""Blocks of a dense parameter: the published sizes, full cover, whole rows."""

from __future__ import annotations

import math

import pytest

from psrt.core.errors import ConfigError
from psrt.partition.buckets import MAX_BUCKETS, in_buckets
from psrt.partition.slicing import cut


@pytest.mark.parametrize(
    ("shape", "pservers", "min_block_size", "sizes"),
    [
        ((8191,), 2, 8192, [8191]),
        ((8192,), 2, 8192, [8192]),
        ((16384,), 2, 8192, [8192, 8192]),
        ((16385,), 2, 8192, [8193, 8192]),
        ((416, 400), 2, 8192, [83200, 83200]),
        ((417, 400), 2, 8192, [83600, 83200]),
        # 10 rows for 4 pservers: 3 rows each leave 1 for the last
        ((10, 8192), 4, 8192, [24576, 24576, 24576, 8192]),
        # rounding up to whole rows leaves fewer blocks than pservers
        ((5, 8192), 4, 8192, [16384, 16384, 8192]),
        ((1, 40960), 4, 8192, [40960]),
        ((100,), 8, 1, [13, 13, 13, 13, 13, 13, 13, 9]),
        ((4, 3, 2), 4, 6, [6, 6, 6, 6]),
        ((), 4, 8192, [1]),
    ],
)
def test_sizes_follow_the_published_formula(
    shape: tuple[int, ...], pservers: int, min_block_size: int, sizes: list[int]
) -> None:
    blocks = cut("w", shape, pservers, min_block_size=min_block_size)

    assert [block.size for block in blocks] == sizes


@pytest.mark.parametrize(
    ("shape", "pservers", "max_block_size", "sizes"),
    [
        ((1024,), 1, 1024, [1024]),
        ((1025,), 1, 1024, [513, 512]),
        ((4096,), 2, 1024, [1024] * 4),
        # two pservers want two blocks, which would be too large
        ((100, 30), 2, 1000, [750] * 4),
        # a row is never cut
        ((3, 5000), 2, 1000, [5000] * 3),
    ],
)
def test_no_block_is_larger_than_the_largest_or_a_row(
    shape: tuple[int, ...], pservers: int, max_block_size: int, sizes: list[int]
) -> None:
    blocks = cut("w", shape, pservers, min_block_size=64, max_block_size=max_block_size)

    assert [block.size for block in blocks] == sizes


def test_a_smallest_block_that_is_larger_than_the_largest_counts() -> None:
    blocks = cut("w", (4096,), 1, min_block_size=2048, max_block_size=1024)

    assert [block.size for block in blocks] == [2048, 2048]


@pytest.mark.parametrize("pservers", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("shape", [(1,), (9973,), (331, 401), (17, 5, 7), (100_003,)])
def test_blocks_cover_the_parameter_once_and_never_cut_a_row(
    shape: tuple[int, ...], pservers: int
) -> None:
    blocks = cut("w", shape, pservers, min_block_size=64)

    width = math.prod(shape[1:])
    assert len(blocks) <= pservers
    assert [block.index for block in blocks] == list(range(len(blocks)))
    ends = [0, *(block.offset + block.size for block in blocks)]
    assert [block.offset for block in blocks] == ends[:-1]
    assert ends[-1] == math.prod(shape)
    assert all(block.size > 0 and block.offset % width == 0 for block in blocks)


def test_without_slicing_a_parameter_is_one_block() -> None:
    blocks = cut("w", (1000, 1000), 8, slice_var_up=False)

    assert [(block.offset, block.size) for block in blocks] == [(0, 1_000_000)]


def test_a_single_block_keeps_the_name_and_several_are_numbered() -> None:
    single = cut("fc_0.b_0", (400,), 2)
    several = cut("fc_0.w_0", (416, 400), 2)

    assert [block.name for block in single] == ["fc_0.b_0"]
    assert [block.name for block in several] == ["fc_0.w_0.block0", "fc_0.w_0.block1"]


def test_a_pserver_with_few_numbers_has_one_bucket() -> None:
    assert in_buckets(["a", "b", "a", "b"], [40, 90, 60, 109], enough=100) == [0, 0, 0, 0]


def test_buckets_of_a_pserver_are_runs_of_about_equal_size() -> None:
    endpoints, sizes = ["a", "b", "a", "a", "a"], [100, 5, 60, 60, 80]

    assert in_buckets(endpoints, sizes, enough=100) == [0, 0, 1, 1, 2]


def test_blocks_after_a_much_larger_one_are_in_another_bucket() -> None:
    assert in_buckets(["a"] * 3, [10, 1000, 10], enough=100) == [0, 0, 9]


def test_the_number_of_buckets_of_a_pserver_is_limited() -> None:
    buckets = in_buckets(["a"] * 1000, [100] * 1000, enough=100)

    assert sorted(set(buckets)) == list(range(MAX_BUCKETS))
    assert max(buckets.count(bucket) for bucket in buckets) == 16


def test_an_empty_parameter_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="parameter w of shape"):
        cut("w", (0, 4), 2)


def test_a_block_size_of_zero_is_refused() -> None:
    with pytest.raises(ConfigError, match="min_block_size is 0"):
        cut("w", (4,), 2, min_block_size=0)
