"""Charts of measured figures: rows per second by size, and latency by percentile."""

from __future__ import annotations

from pathlib import Path

from benchmarks.measuring.harness import Figures
from benchmarks.pictures.svg_chart import Line, chart, linear, logarithmic

AXES = {
    "batch": "ids in a step",
    "width": "floats in a row",
    "table_rows": "rows in the table",
    "trainers": "trainers, each a process",
}


def draw(measured: Figures, folder: Path) -> list[Path]:
    """Write a chart for each measured benchmark; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures: dict[str, str] = {}
    for axis, points in measured.get("rows_by_size", {}).get("axes", {}).items():
        pictures[f"rows_by_{axis}.svg"] = rows_picture(axis, points)
    if "latency" in measured:
        pictures["latency.svg"] = latency_picture(measured["latency"])
    for name, text in pictures.items():
        (folder / name).write_text(text)
    return [folder / name for name in pictures]


def rows_picture(axis: str, points: Figures) -> str:
    """A chart of million rows per second by one of the sizes."""
    sizes = [float(size) for size in points]
    spreads = [spread_of(figures["rows_per_s"]) for figures in points.values()]
    line = Line(
        "rows",
        [(size, median) for size, (_, median, _) in zip(sizes, spreads, strict=True)],
        [(least, most) for least, _, most in spreads],
    )
    x = logarithmic(AXES[axis], sizes, at_values=True)
    y = linear("million rows pulled and pushed per second", max(most for *_, most in spreads))
    return chart(f"Rows per second by {AXES[axis]}", x, y, [line])


def spread_of(figure: object) -> tuple[float, float, float]:
    """(least, median, largest) of a figure, in millions."""
    if isinstance(figure, dict):
        return figure["min"] / 1e6, figure["median"] / 1e6, figure["max"] / 1e6
    value = float(figure) / 1e6  # type: ignore[arg-type]
    return value, value, value


def latency_picture(figures: Figures) -> str:
    """A chart of the microseconds of a pull of one row, by percentile."""
    loaded = f"{figures['load_trainers']} other trainers at work"
    lines = [
        Line(label, list(enumerate(figures[name]["curve"], start=1)))
        for name, label in (("alone", "alone"), ("loaded", loaded))
    ]
    values = [value for line in lines for _, value in line.points]
    x = linear("percent of the calls that took no longer", 100.0)
    return chart("Time to pull one row", x, logarithmic("µs", values), lines)
