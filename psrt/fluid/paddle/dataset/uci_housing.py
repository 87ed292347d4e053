"""`paddle.dataset.uci_housing`: districts of Boston; 13 normalised numbers and a price."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from psrt.core.types import F64
from psrt.fluid.paddle.dataset import common

URL = "http://paddlemodels.bj.bcebos.com/uci_housing/housing.data"
_COLUMNS, _TRAINED = 14, 0.8

Reader: TypeAlias = Callable[[], Iterator[tuple[F64, F64]]]


def train() -> Reader:
    """Return a reader of the first four fifths: (13,) numbers and (1,) price."""
    return lambda: _examples(0.0, _TRAINED)


def test() -> Reader:
    """Return a reader of the last fifth."""
    return lambda: _examples(_TRAINED, 1.0)


def _examples(start: float, end: float) -> Iterator[tuple[F64, F64]]:
    with open(common.download(URL, "uci_housing")) as file:
        rows = np.array(file.read().split(), np.float64).reshape(-1, _COLUMNS)
    low, high, mean = rows.min(0), rows.max(0), rows.mean(0)
    rows[:, :-1] = ((rows - mean) / (high - low))[:, :-1]
    for row in rows[int(len(rows) * start) : int(len(rows) * end)]:
        yield row[:-1], row[-1:]


__all__ = ["test", "train"]
