"""What a command is asked for, on the standard output: all of it is written, or the command fails.

For commands whose result is text. Progress, and what is said of files that were written, may get
lost: `click.echo`.
"""

from __future__ import annotations

import os
import sys

import click

from psrt.core.errors import ConfigError

_HINT = "Send it to a file that may be written and has room."


def tell(text: str, nl: bool = True) -> None:
    """Write `text`, by default as a line of its own.

    A reader that left is no error of ours: `main` ends quietly then.
    """
    if sys.stdout is None:
        raise ConfigError("the standard output is closed; nothing was written.", hint=_HINT)
    try:
        click.echo(text, nl=nl)
    except BrokenPipeError:
        raise
    except OSError as error:
        # What is left in the buffer would be written once more, and fail, when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise ConfigError(
            f"the standard output cannot be written ({error.strerror}).", hint=_HINT
        ) from error
