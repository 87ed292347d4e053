"""A drawing of the skew of ids: for each slot, occurrences over rank, both logarithmic.

A straight line is Zipf's law. Needs matplotlib, an optional package.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from psrt.core.extras import required
from psrt.core.types import I64
from psrt.data.sources import unwritable

_LEGEND_SLOTS = 12
_MOST_POINTS = 2000


def draw_skew(path: Path, counts: Mapping[str, I64]) -> None:
    """Write a PNG; `counts` holds the occurrences of each id of each slot, in any order.

    Raises `ConfigError` without matplotlib, `DataError` if `path` cannot be written.
    """
    figure = required("matplotlib.figure", "plot", "a drawing").Figure(layout="constrained")
    axes = figure.add_subplot(
        xscale="log", yscale="log", xlabel="rank of an id", ylabel="occurrences"
    )
    for name, of_ids in counts.items():
        ranks, occurrences = points(of_ids)
        axes.plot(ranks, occurrences, label=name, linewidth=1)
    if 0 < len(counts) <= _LEGEND_SLOTS:
        axes.legend()
    try:
        figure.savefig(path, format="png")
    except OSError as error:
        raise unwritable(path, error) from error


def points(counts: I64) -> tuple[I64, I64]:
    """Return ranks from 1 on and their occurrences, thinned out evenly on a logarithmic scale."""
    ordered = np.sort(counts)[::-1]
    if len(ordered) <= 1:
        return np.arange(1, len(ordered) + 1), ordered
    ranks = np.unique(np.geomspace(1, len(ordered), _MOST_POINTS).round().astype(np.int64))
    return ranks, ordered[ranks - 1]
