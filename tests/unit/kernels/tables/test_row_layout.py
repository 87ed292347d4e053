"""The layout of a row."""

from __future__ import annotations

import pytest

from psrt.core.errors import ConfigError
from psrt.kernels.tables.row_layout import row_layout


def test_a_row_is_header_weights_and_state() -> None:
    layout = row_layout(width=16, state_words=32)

    assert (layout.header_words, layout.weights_at, layout.state_at) == (4, 4, 20)
    assert (layout.seen_at, layout.show_at, layout.click_at) == (-1, -1, -1)
    assert (layout.words, layout.row_bytes) == (52, 208)


def test_words_that_a_table_asks_for_stand_behind_the_id() -> None:
    layout = row_layout(width=2, state_words=1, optional={"click", "show"})

    assert (layout.seen_at, layout.show_at, layout.click_at) == (-1, 4, 5)
    assert (layout.weights_at, layout.state_at, layout.words) == (6, 8, 10)


@pytest.mark.parametrize("width", [1, 2, 3, 16, 4095, 4096])
@pytest.mark.parametrize("storage", ["float32", "float16", "bfloat16"])
def test_rows_are_whole_words_of_eight_bytes_and_hold_all_of_their_parts(
    width: int, storage: str
) -> None:
    layout = row_layout(width, 2 * width, storage, ["seen"])

    weight_bytes = 4 * (layout.state_at - layout.weights_at)
    assert layout.words % 2 == 0
    assert weight_bytes >= width * (4 if storage == "float32" else 2)
    assert 0 <= layout.words - layout.state_at - 2 * width <= 1


def test_the_image_of_a_half_row_has_the_header_and_state_of_the_row() -> None:
    half = row_layout(5, 10, "bfloat16", ["show"])

    image = half.as_float32()

    assert not image.is_half
    assert (image.weights_at, image.show_at) == (half.weights_at, half.show_at)
    assert (image.state_at, image.words) == (10, 20)


def test_an_unknown_storage_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be stored as 'float8'"):
        row_layout(4, 0, "float8")
