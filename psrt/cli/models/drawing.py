"""A histogram of the norms of rows; needs matplotlib, an optional package."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from psrt.cli.models.facts import EDGES, RowFacts
from psrt.core.errors import ConfigError
from psrt.core.extras import required


def draw_norms(path: Path, tables: Sequence[RowFacts]) -> None:
    """Write a PNG with the number of rows by norm, a line for each table.

    Raises `ConfigError` without matplotlib, or if `path` cannot be written.
    """
    figure = required("matplotlib.figure", "plot", "a drawing").Figure(layout="constrained")
    axes = figure.add_subplot(xscale="log", xlabel="norm of a row", ylabel="rows")
    for table in tables:
        used = table.bins.nonzero()[0]
        if len(used):
            first, last = used[0], used[-1] + 1
            axes.stairs(table.bins[first:last], EDGES[first : last + 1], label=table.name)
    if tables:
        axes.legend()
    try:
        figure.savefig(path, format="png")
    except OSError as error:
        raise ConfigError(f"--histogram {path} cannot be written ({error.strerror}).") from error
