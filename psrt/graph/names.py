"""The user's line, and errors for names that the public modules do not have."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import NoReturn

from psrt.core.errors import UnknownNameError
from psrt.core.hints import did_you_mean

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def user_line() -> str:
    """Return `file.py:12` of the nearest caller outside psrt."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_own(frame):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def _is_own(frame: FrameType) -> bool:
    """True for code of psrt, also for what dataclasses generate, which is in no file."""
    file, module = frame.f_code.co_filename, str(frame.f_globals.get("__name__"))
    return file.startswith(_PACKAGE) or (file == "<string>" and module.startswith("psrt."))


def unknown_name(module: str, what: str, name: str, known: Sequence[str]) -> UnknownNameError:
    """Return the error of `module.name`, where `module` has each `what` of `known`."""
    return UnknownNameError(
        f"{module} has no {what} {name}, which {user_line()} uses.",
        hint=did_you_mean(name, known, f"It has {', '.join(sorted(known))}."),
    )


def refuse_unknown(module: str, what: str, known: Sequence[str]) -> Callable[[str], NoReturn]:
    """Return the `__getattr__` of a public module with the names `known`."""

    def refuse(name: str) -> NoReturn:
        if name.startswith("__"):  # the import system asks every module for names of its own
            raise AttributeError(name)
        raise unknown_name(module, what, name, known)

    return refuse
