"""The report of `psrt status --watch`: drawn in place by rich on a terminal, else as plain text.

rich is optional. Without it a terminal is cleared before each look, and a file or a pipe gets one
report after the other, as it does with it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import click

from psrt.cli import results
from psrt.core.extras import found
from psrt.status import StatusReport

Show: TypeAlias = Callable[[StatusReport], None]


@contextlib.contextmanager
def watching(is_drawn: bool) -> Iterator[Show]:
    """A function that shows a report: if it `is_drawn`, in place of the one before."""
    is_drawn = is_drawn and sys.stdout.isatty()
    live = found("rich.live") if is_drawn else None
    if live is None:
        yield _in_place if is_drawn else _below
        return
    with live.Live(auto_refresh=False, vertical_overflow="crop") as drawn:
        yield lambda report: drawn.update(drawing_of(report), refresh=True)


def _in_place(report: StatusReport) -> None:
    click.clear()
    _below(report)


def _below(report: StatusReport) -> None:
    results.write("\n".join(report.lines()))


def drawing_of(report: StatusReport) -> Any:
    """The report for a terminal: a table, waits in yellow, problems and errors in red."""
    console, text = found("rich.console"), found("rich.text")
    assert console is not None
    assert text is not None
    styled = [(line, "yellow") for line in report.waits]
    styled += [(line, "bold red") for line in report.problems]
    styled += [(line, "red") for line in report.errors]
    lines = [text.Text(line, style) for line, style in styled]
    quiet = text.Text(report.found[0], "green")
    summary = [text.Text(line) for line in report.summary]
    title = text.Text(report.title, "bold")
    return console.Group(title, "", _table(report), "", *summary, "", *(lines or [quiet]))


def _table(report: StatusReport) -> Any:
    table, text = found("rich.table"), found("rich.text")
    assert table is not None
    assert text is not None
    drawn = table.Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for at, title in enumerate(report.HEAD):
        drawn.add_column(title, justify="left" if at in report.LEFT else "right")
    for row in report.rows:
        drawn.add_row(*map(text.Text, row))  # not markup: names come from the job
    return drawn
