"""Scored examples, kept one by one: measures that sums in constant memory cannot have.

`gauc`, the area under the ROC curve within groups, is the mean over groups, weighted by their
examples (or weights), of the area in each; groups of one class have none and are left out (Zhu et
al. 2017, "Optimized Cost per Click in Taobao Display Advertising", section 5.1). `weighted_auc`
counts each pair of a positive and a negative by the product of their weights. Both are exact.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from psrt.core.errors import ProgramError
from psrt.core.types import F32, F64, I64
from psrt.trainer.inputs import Scored

NEWEST = 1 << 20
"""Examples that a progress line keeps."""


class ScoredRows:
    """Scored batches in their order; the newest `limit` examples or more stay, 0 = all."""

    def __init__(self, limit: int = 0) -> None:
        self._limit, self._examples = limit, 0
        self._batches: deque[Scored] = deque()
        self._values: dict[str, float] | None = None

    def add(self, scored: Scored) -> None:
        """Keep a batch, and drop old ones without which there are enough."""
        self._values = None
        self._batches.append(scored)
        self._examples += len(scored.scores)
        while 0 < self._limit <= self._examples - len(self._batches[0].scores):
            self._examples -= len(self._batches.popleft().scores)

    def values(self) -> dict[str, float]:
        """The measures by name, NaN for one that has no value; empty without examples.

        Raises `ProgramError` for a function of the user's that fails, or returns no number.
        """
        if self._values is None:
            self._values = self._measured() if self._batches else {}
        return self._values

    def _measured(self) -> dict[str, float]:
        scores = np.concatenate([each.scores for each in self._batches])
        labels = np.concatenate([each.labels for each in self._batches])
        first = self._batches[0]
        groups = None if first.groups is None else _joined([e.groups for e in self._batches])
        weights = None if first.weights is None else _joined([e.weights for e in self._batches])
        found: dict[str, float] = {}
        if groups is not None:
            found["gauc"] = grouped_auc(scores, labels, groups, weights)
        if weights is not None:
            found["weighted_auc"] = grouped_auc(scores, labels, None, weights)
        for name, function in first.functions.items():
            found[name] = _number_of(name, function(scores, labels))
        return found


def _joined(arrays: list[np.ndarray | None]) -> np.ndarray:
    return np.concatenate([array for array in arrays if array is not None])


def _number_of(name: str, value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise ProgramError(
            f"functions[{name!r}] of psrt.Model returned {value!r}, which is no number.",
            hint="Return one number for predictions (n,) and labels (n,).",
        ) from error


def grouped_auc(
    scores: F32, labels: F32, groups: I64 | None = None, weights: F32 | None = None
) -> float:
    """Area under the ROC curve within groups; of all examples without `groups`. All are (n,).

    Ties count half; labels above 0.5 are positive; a NaN score counts as 0. NaN if no group has
    both classes.
    """
    if not len(scores):
        return math.nan
    scores = np.where(np.isnan(scores), np.float32(0), scores)
    of = np.zeros(len(scores), np.int64) if groups is None else groups
    each = np.ones(len(scores)) if weights is None else weights.astype(np.float64)
    order = np.lexsort((scores, of))
    scores, of, each, positive = scores[order], of[order], each[order], labels[order] > 0.5
    begins_group = np.r_[True, of[1:] != of[:-1]]
    begins_tie = begins_group | np.r_[True, scores[1:] != scores[:-1]]
    ties = np.flatnonzero(begins_tie)
    ups: F64 = np.add.reduceat(each * positive, ties)
    downs: F64 = np.add.reduceat(each * ~positive, ties)
    starts = np.flatnonzero(begins_group[ties])
    below = np.cumsum(downs) - downs
    below -= np.repeat(below[starts], np.diff(np.r_[starts, len(ties)]))
    areas = np.add.reduceat(ups * (below + downs / 2), starts)
    up, down = np.add.reduceat(ups, starts), np.add.reduceat(downs, starts)
    both = (up > 0) & (down > 0)
    size = (up + down)[both]
    if not size.sum() > 0:
        return math.nan
    return float(np.dot(size, areas[both] / (up * down)[both]) / size.sum())
