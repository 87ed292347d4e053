"""Blocks of a dense parameter: the published sizes, full cover, whole rows."""

from __future__ import annotations

import math

import pytest

from psrt.core.errors import ConfigError
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


def test_an_empty_parameter_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="parameter w of shape"):
        cut("w", (0, 4), 2)


def test_a_block_size_of_zero_is_refused() -> None:
    with pytest.raises(ConfigError, match="min_block_size is 0"):
        cut("w", (4,), 2, min_block_size=0)
