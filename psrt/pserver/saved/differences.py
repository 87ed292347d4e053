"""Differences of two cuts, parameter by parameter, in the memory of one step of a walk."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from psrt.core.types import F32, Array, Shape
from psrt.pserver.saved.cut_dense import CutDense
from psrt.pserver.saved.cut_tables import CutTable, steps
from psrt.pserver.saved.states import CutState

_PIECE_ELEMENTS = 4 << 20

ONLY_BEFORE, ONLY_AFTER, RESHAPED, EQUAL, CHANGED = (
    "removed",
    "added",
    "reshaped",
    "equal",
    "changed",
)


@dataclass(frozen=True)
class TableDifference:
    """Differences of one parameter between two cuts.

    `state` is one of removed, added, reshaped, equal and changed. `kind` is dense or sparse. The
    counts are rows of a sparse table and elements of a dense parameter; `largest` and `mean` are
    those of |after − before| over the weights of all rows in both, `norm` is the Euclidean norm of
    after − before. Weights of a reshaped parameter are not compared.
    """

    name: str
    kind: str
    state: str
    shape_before: Shape = ()
    shape_after: Shape = ()
    added: int = 0
    removed: int = 0
    changed: int = 0
    common: int = 0
    largest: float = 0.0
    mean: float = 0.0
    norm: float = 0.0


def differences(
    before: CutState, after: CutState, advance: Callable[[int], None] = lambda size_bytes: None
) -> Iterator[TableDifference]:
    """One difference for each parameter of either cut, dense ones first, in order of names.

    `advance` gets the bytes read. Raises `StorageError` naming a file that is damaged.
    """
    for name in sorted({*before.dense, *after.dense}):
        yield _dense(name, before.dense.get(name), after.dense.get(name), advance)
    for name in sorted({*before.sparse, *after.sparse}):
        yield _sparse(name, before.sparse.get(name), after.sparse.get(name), advance)


class _Sums:
    """Sums over |after − before| of weights that both cuts have."""

    def __init__(self) -> None:
        self.weights = 0
        self.total = self.squares = self.largest = 0.0

    def add(self, before: F32, after: F32) -> None:
        change = np.abs(after.astype(np.float64) - before)
        self.weights += change.size
        self.total += float(change.sum())
        self.squares += float(np.square(change).sum())
        self.largest = max(self.largest, float(change.max(initial=0.0)))

    @property
    def mean(self) -> float:
        return self.total / self.weights if self.weights else 0.0

    @property
    def norm(self) -> float:
        return math.sqrt(self.squares)


def _dense(
    name: str, before: CutDense | None, after: CutDense | None, advance: Callable[[int], None]
) -> TableDifference:
    if before is None or after is None:
        only = before or after
        assert only is not None
        count, shape = only.spec.size, only.spec.shape
        if after is None:
            return TableDifference(name, "dense", ONLY_BEFORE, shape, removed=count)
        return TableDifference(name, "dense", ONLY_AFTER, (), shape, added=count)
    shapes = before.spec.shape, after.spec.shape
    if shapes[0] != shapes[1]:
        return TableDifference(
            name, "dense", RESHAPED, *shapes, added=after.spec.size, removed=before.spec.size
        )
    sums, changed, size = _Sums(), 0, before.spec.size
    for first in range(0, size, _PIECE_ELEMENTS):
        end = min(first + _PIECE_ELEMENTS, size)
        one, other = before.values(first, end), after.values(first, end)
        changed += int(np.count_nonzero(_differ(one, other)))
        sums.add(one, other)
        advance(8 * (end - first))
    return TableDifference(
        *(name, "dense", CHANGED if changed else EQUAL, *shapes),
        changed=changed,
        common=size,
        largest=sums.largest,
        mean=sums.mean,
        norm=sums.norm,
    )


def _sparse(
    name: str, before: CutTable | None, after: CutTable | None, advance: Callable[[int], None]
) -> TableDifference:
    if after is None:
        assert before is not None
        rows = _rows(before, advance)
        return TableDifference(name, "sparse", ONLY_BEFORE, (before.spec.width,), removed=rows)
    shape_after: Shape = (after.spec.width,)
    if before is None:
        rows = _rows(after, advance)
        return TableDifference(name, "sparse", ONLY_AFTER, (), shape_after, added=rows)
    shape_before: Shape = (before.spec.width,)
    counts, sums = _compared(before, after, advance)
    state = CHANGED if counts["added"] + counts["removed"] + counts["changed"] else EQUAL
    return TableDifference(
        *(name, "sparse", state if shape_before == shape_after else RESHAPED),
        shape_before=shape_before,
        shape_after=shape_after,
        added=counts["added"],
        removed=counts["removed"],
        changed=counts["changed"],
        common=counts["common"],
        largest=sums.largest,
        mean=sums.mean,
        norm=sums.norm,
    )


def _rows(table: CutTable, advance: Callable[[int], None]) -> int:
    count = 0
    for group in table.groups(0, table.spec.virtual_shards):
        count += len(group.rows.ids)
        advance(group.size_bytes)
    return count


def _compared(
    before: CutTable, after: CutTable, advance: Callable[[int], None]
) -> tuple[Counter[str], _Sums]:
    """Numbers of rows, and sums over the weights of those in both tables if they are as wide."""
    width, sums, counts = before.spec.width, _Sums(), Counter[str]()
    shards = max(before.spec.virtual_shards, after.spec.virtual_shards)
    with before.walk(0, shards) as one, after.walk(0, shards) as other:
        for first, last in steps(one.sizes + other.sizes, 0, shards):
            rows, later = one.rows(first, last), other.rows(first, last)
            _, here, there = np.intersect1d(
                rows.rows.ids, later.rows.ids, assume_unique=True, return_indices=True
            )
            counts["removed"] += len(rows.rows.ids) - len(here)
            counts["added"] += len(later.rows.ids) - len(there)
            counts["common"] += len(here)
            if after.spec.width == width:
                was, now = rows.weights(width)[here], later.weights(width)[there]
                counts["changed"] += int(np.count_nonzero(_differ(was, now).any(axis=1)))
                sums.add(was, now)
            advance(rows.size_bytes + later.size_bytes)
    return counts, sums


def _differ(one: F32, other: F32) -> Array:
    """True where the bits of two arrays differ."""
    found: Array = one.view(np.int32) != other.view(np.int32)
    return found
