"""Columns of something wider, as kernels read them."""

from __future__ import annotations

import numpy as np
import pytest

from psrt.executor.compute.registry.strided_rows import (
    are_strided,
    flat_groups,
    flat_rows,
    reshape_strided,
)

WIDE = np.arange(60, dtype=np.float32).reshape(4, 15)


@pytest.mark.parametrize(
    ("values", "is_so"),
    [
        (WIDE[:, 3:9], True),
        (WIDE[:, 3:9].reshape(4, 2, 3), True),
        (WIDE[1:2, 3:9], False),  # one piece is one piece
        (WIDE, False),
        (WIDE[:0, 3:9], False),
        (WIDE[:, 0], False),
        (WIDE[:, ::2], False),
        (WIDE[::-1, 3:9], False),
        (WIDE[:, :6].reshape(4, 2, 3)[:, :, :2], False),
        (WIDE[::2], True),
    ],
)
def test_what_lies_apart(values: np.ndarray, is_so: bool) -> None:
    assert are_strided(values) == is_so


@pytest.mark.parametrize("shape", [(4, 6), (4, 2, 3), (4, 3, 2, 1), (4, 1, 6)])
def test_another_shape_is_a_view_of_the_same_numbers(shape: tuple[int, ...]) -> None:
    part = WIDE[:, 3:9]

    view = reshape_strided(part, shape)

    assert np.shares_memory(view, WIDE)
    np.testing.assert_array_equal(view, part.reshape(shape))


@pytest.mark.parametrize("part", [WIDE[:, 3:9], WIDE, WIDE[:, :6:2], WIDE[:0]])
def test_rows_begin_so_far_apart(part: np.ndarray) -> None:
    flat, apart = flat_rows(part)

    rows = [flat[i * apart : i * apart + part.shape[1]] for i in range(len(part))]

    np.testing.assert_array_equal(np.reshape(rows, part.shape), part)


@pytest.mark.parametrize(
    "values",
    [WIDE[:, 3:9].reshape(4, 2, 3), WIDE.reshape(4, 5, 3), WIDE[:, 3:9], WIDE[:0], WIDE[:, :6:2]],
)
def test_groups_of_rows_begin_so_far_apart(values: np.ndarray) -> None:
    flat, rows, apart = flat_groups(values, 3)

    found = [flat[i // rows * apart + i % rows * 3 :][:3] for i in range(values.size // 3)]

    np.testing.assert_array_equal(np.reshape(found, -1), values.reshape(-1))
