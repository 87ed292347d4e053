"""Tracebacks that end at the user's line, without the frames of psrt and of what psrt calls.

An error of psrt under a user's program has its cause in a line of that program. Other exceptions
keep their frames if they were raised inside of psrt: they are defects.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from psrt.core.errors import PsrtError

_PSRT = str(Path(__file__).resolve().parents[2])
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib")})

Hook = Callable[[type[BaseException], BaseException, "TracebackType | None"], Any]


def shortened(error: BaseException, trace: TracebackType | None) -> TracebackType | None:
    """Return the frames of the user's code in the traceback of an error; all of them of a defect.

    An error of psrt that stays short no longer has its cause, which is one of psrt.
    """
    frames = list(_frames(trace))
    if not frames or not (isinstance(error, PsrtError) or _is_users(frames[-1].tb_frame)):
        return trace
    first = next((n for n, each in enumerate(frames) if _is_psrts(each.tb_frame)), len(frames))
    kept = frames[:first] + [each for each in frames[first:] if _is_users(each.tb_frame)]
    if not any(_is_users(each.tb_frame) for each in kept):
        return trace
    if isinstance(error, PsrtError):
        error.__cause__, error.__suppress_context__ = None, True
    short: TracebackType | None = None
    for each in reversed(kept):
        short = TracebackType(short, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return short


def shorten_uncaught(is_debugging: Callable[[], bool]) -> None:
    """Shorten tracebacks that Python or IPython prints, unless `is_debugging()` then."""
    former: Hook = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not is_debugging():
            trace = shortened(error, trace)
            error = error.with_traceback(trace)
        former(kind, error, trace)

    sys.excepthook = hook
    ipython = sys.modules.get("IPython")
    if ipython is not None and (shell := ipython.get_ipython()) is not None:
        _shorten_in(shell, is_debugging)


def _shorten_in(shell: Any, is_debugging: Callable[[], bool]) -> None:
    def shown(
        shell: Any, kind: type[BaseException], error: BaseException, trace: Any, tb_offset: Any
    ) -> None:
        trace = trace if is_debugging() else shortened(error, trace)
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)

    shell.set_custom_exc((PsrtError,), shown)


def _frames(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _is_psrts(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_PSRT)


def _is_users(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    return not (name.startswith((_PSRT, *_LIBRARIES, "<frozen")))
