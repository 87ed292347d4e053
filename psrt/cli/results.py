"""Results of commands on the standard output: all of a text is written, or the command fails.

Progress and notes about written files may get lost; they use `click.echo`, or
`psrt.core.process.note` where work goes on that is worth more than its progress.
"""

from __future__ import annotations

import os
import sys

import click

from psrt.core.errors import ConfigError

_HINT = "Send it to a file that may be written and has room."


def write(text: str, nl: bool = True) -> None:
    """Write `text`, by default as a line of its own; raises `ConfigError` if that fails.

    `BrokenPipeError` passes through: `main` ends quietly when the reader has left.
    """
    if sys.stdout is None:
        raise ConfigError("the standard output is closed; nothing was written.", hint=_HINT)
    try:
        click.echo(text, nl=nl)
    except BrokenPipeError:
        raise
    except OSError as error:
        # Python would write the rest of the buffer again at its end, and fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise ConfigError(
            f"the standard output cannot be written ({error.strerror}).", hint=_HINT
        ) from error
