"""Failure of a script, as far as an exit handler can detect it.

Python leaves an uncaught error, Ctrl-C included, in `sys.last_value`; so does `psrt trainer
train.py` with an exit code other than 0. Plain Python hides exit codes from exit handlers: a script
that ends by `sys.exit(3)` there counts as one that ended well.
"""

from __future__ import annotations

import sys


class _Before:
    """The error that was known at the last step, and so did not end the script."""

    error: BaseException | None = None


def failed() -> bool:
    """Return whether an error, or an exit code under `psrt trainer`, has ended the script."""
    return _last_error() is not _Before.error


def went_on() -> None:
    """Record that the script is at work: no earlier error has ended it."""
    _Before.error = _last_error()


def _last_error() -> BaseException | None:
    return getattr(sys, "last_value", None)
