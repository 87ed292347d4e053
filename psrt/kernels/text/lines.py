"""Rows of arrays to MultiSlot lines, as the writers of data sets want them."""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.kernels.jit import kernel
from psrt.kernels.text.text import NEWLINE, SPACE, ZERO, write_fixed, write_unsigned


@kernel(
    "const u1[::1], const f4[:, ::1], const i8[:, ::1], u1[::1], i8[::1] -> void", group="convert"
)
def format_rows(labels: Any, dense: Any, ids: Any, out: Any, ends: Any) -> None:
    """Rows as lines `1 label`, `d v1 … vd`, then `1 id` per column, the text of row i ends at
    `ends[i]`.

    `labels` (n,), `dense` (n, d) with at most 6 decimals, `ids` (n, s) unsigned 64-bit patterns;
    `out` has `row_bytes(d, s)` per row.
    """
    at = 0
    for row in range(len(labels)):
        out[at] = ZERO + 1
        out[at + 1] = SPACE
        at = write_unsigned(out, at + 2, np.uint64(labels[row]))
        out[at] = SPACE
        at = write_unsigned(out, at + 1, np.uint64(dense.shape[1]))
        for column in range(dense.shape[1]):
            out[at] = SPACE
            at = write_fixed(out, at + 1, np.float64(dense[row, column]))
        for column in range(ids.shape[1]):
            out[at] = SPACE
            out[at + 1] = ZERO + 1
            out[at + 2] = SPACE
            at = write_unsigned(out, at + 3, np.uint64(ids[row, column]))
        out[at] = NEWLINE
        at += 1
        ends[row] = at


def row_bytes(dense: int, ids: int) -> int:
    """The most text one row of `format_rows` can take."""
    return 32 + dense * 24 + ids * 24
