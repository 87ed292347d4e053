"""`psrt plot`: the curves of trainings, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import click

from psrt.core.errors import DataError
from psrt.core.extras import required

_EPILOG = """\b
Examples:
  psrt plot runs/latest                            loss and AUC of the newest launch
  psrt plot runs/* --out compare.png --value auc
  psrt plot a.curves.jsonl b.curves.jsonl
"""
Course: TypeAlias = Sequence[Mapping[str, Any]]
Runs: TypeAlias = Mapping[str, Course]

_WIDTH_INCHES, _HEIGHT_INCHES = 8, 3.2


@click.command(epilog=_EPILOG)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--out", default="curves.png", show_default=True, help="File to draw: PNG, SVG, PDF.")
@click.option("--value", "values", multiple=True, help="Value to draw; repeat it for several.")
@click.option(
    "--by",
    type=click.Choice(["step", "examples", "seconds"]),
    default="step",
    show_default=True,
    help="The horizontal axis.",
)
def plot(runs: tuple[str, ...], out: str, values: tuple[str, ...], by: str) -> None:
    """Draw the curves of trainings: progress as lines, validations as dots.

    RUN is a directory of `psrt launch`, whose trainer 0 is drawn, or a file that --curves of
    psrt trainer has written. Needs matplotlib (the extra plot).
    """
    from psrt.trainer.measuring import curves

    files = {run: _file_of(Path(run), curves.SUFFIX) for run in runs}
    records = {run: curves.read(path) for run, path in files.items()}
    known = {name for course in records.values() for each in course for name in each}
    drawn = list(values) or [name for name in ("loss", "auc") if name in known]
    for name in drawn:
        if name not in known or name in curves.PLACES:
            there = ", ".join(sorted(known - set(curves.PLACES))) or "nothing"
            raise DataError(f"no run has {name!r}.", hint=f"They have {there}.")
    if not drawn:
        raise DataError("these runs have no values.", hint="Name others, or wait for a line.")
    _draw(records, drawn, by, out)
    click.echo(f"wrote {out}: {', '.join(drawn)} of {len(records)} runs")


def _file_of(run: Path, suffix: str) -> Path:
    """The file of a run: itself, or that of the first trainer in its directory."""
    if not run.is_dir():
        return run
    found = sorted(run.glob(f"*{suffix}"))
    if not found:
        raise DataError(
            f"{run} has no curves.",
            hint=f"Directories of psrt launch have files *{suffix}, as --curves of psrt trainer.",
        )
    return found[0]


def _draw(records: Runs, values: Sequence[str], by: str, out: str) -> None:
    figure = required("matplotlib.figure", "plot", "a drawing").Figure(
        figsize=(_WIDTH_INCHES, _HEIGHT_INCHES * len(values)), layout="constrained"
    )
    for axes, value in zip(figure.subplots(len(values), squeeze=False)[:, 0], values, strict=True):
        for number, (run, course) in enumerate(records.items()):
            _draw_run(axes, f"C{number % 10}", run, course, (by, value))
        axes.set(xlabel=by, ylabel=value)
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    try:
        figure.savefig(out)
    except (OSError, ValueError) as error:
        raise DataError(f"{out} cannot be drawn: {error}.") from error


def _draw_run(axes: Any, color: str, run: str, course: Course, names: tuple[str, str]) -> None:
    """One line for progress, and dots for validations, where both values are known."""
    for kind, style in (("train", "-"), ("validation", "o")):
        points = [each for each in course if each["kind"] == kind and each.keys() >= {*names}]
        if points:
            columns = ([each[name] for each in points] for name in names)
            axes.plot(*columns, style, color=color, label=f"{run}, {kind}")
