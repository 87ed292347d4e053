"""Lines on the standard output that work can do without."""

from __future__ import annotations

import logging
import os
import sys

log = logging.getLogger("psrt.core")


def note(text: str) -> None:
    """Write a line of progress; once that fails, log it and write no more.

    A full disk, or a reader that has left (`| head`), costs no training.
    """
    if sys.stdout is None:
        return
    try:
        print(text, flush=True)
    except OSError as error:
        # Python would write the rest of the buffer again at its end, and fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        log.warning(
            "the standard output cannot be written (%s); the work goes on without a word there",
            error.strerror,
        )
