"""A table of Criteo as arrays, with a tenth of its rows set aside."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from psrt.core.types import F32, I64
from psrt.data.hashing import hash_ids

INTEGERS, CATEGORIES = 13, 26
TESTED = 10
"""One row in so many is set aside."""


class Clicks(NamedTuple):
    """`ids` (n, 26) from 0 on, `numbers` (n, 13) = sign(x) · ln(1 + |x|), and `click` (n, 1)."""

    ids: I64
    numbers: F32
    click: F32

    def part(self, rows: Any) -> Clicks:
        """The rows of a slice, a mask or an array of positions."""
        return Clicks(self.ids[rows], self.numbers[rows], self.click[rows])

    @property
    def rows(self) -> int:
        return len(self.click)


def read(path: Path, most: int = 0) -> Clicks:
    """Read a table as Criteo published it, plain or .gz, or its first rows."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="ascii") as lines:  # type: ignore[operator]
        rows = [line.rstrip("\n").split("\t") for line in itertools.islice(lines, most or None)]
    columns = list(zip(*rows, strict=True))
    click = np.array(columns[0], np.float32)[:, None]
    counts = [[float(text or 0) for text in column] for column in columns[1 : 1 + INTEGERS]]
    raw = np.array(counts, np.float32).T
    hashed = [hash_ids(texts, slot) for slot, texts in enumerate(columns[1 + INTEGERS :], 1)]
    _, ids = np.unique(np.stack(hashed, axis=1), return_inverse=True)
    numbers = np.sign(raw) * np.log1p(np.abs(raw))
    return Clicks(ids.reshape(len(rows), CATEGORIES), np.ascontiguousarray(numbers), click)


def set_aside(clicks: Clicks) -> tuple[Clicks, Clicks]:
    """Rows to train on, and to test on; the same for all runs."""
    is_tested = np.random.default_rng(0).permutation(clicks.rows) % TESTED == 0
    return clicks.part(~is_tested), clicks.part(is_tested)


def save(clicks: Clicks, path: Path) -> None:
    np.savez(path, **clicks._asdict())


def load(path: Path) -> Clicks:
    with np.load(path) as found:
        return Clicks(**{name: found[name] for name in Clicks._fields})
