"""Progress of a command on stderr; results go to stdout."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

_LINE_EVERY_S = 2.0


@contextmanager
def progress(label: str, length: int) -> Iterator[Callable[[int], None]]:
    """Yield `advance(amount)`, which draws a bar on a terminal, else a line every two seconds."""
    if sys.stderr.isatty():
        with click.progressbar(length=max(1, length), label=label, file=sys.stderr) as bar:
            yield bar.update
        return
    done, next_line_s = 0, time.monotonic() + _LINE_EVERY_S

    def advance(amount: int) -> None:
        nonlocal done, next_line_s
        done += amount
        if time.monotonic() >= next_line_s:
            next_line_s = time.monotonic() + _LINE_EVERY_S
            click.echo(f"{label}: {min(100, 100 * done // max(1, length))} %", err=True)

    yield advance
