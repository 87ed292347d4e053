"""How a script ended: what the interpreter tells of it to those who are called at its exit.

An error that nobody caught stays in `sys.last_value`; an exit code is told to nobody, so from
`watch` on `sys.exit`, `exit` and `quit` note theirs. What a script caught and went on after is no
end: `went_on` forgets it. `raise SystemExit(n)` in a script run by plain Python is seen by nobody.
"""

from __future__ import annotations

import builtins
import functools
import sys
import threading
from collections.abc import Callable
from typing import Any


class _Seen:
    """The code of the last exit asked for, and an error that is known and did not end it."""

    code: object = None
    error: BaseException | None = None


def failed() -> bool:
    """Whether the script was ended by an error, or by an exit code that says there was one."""
    return _Seen.code not in (None, 0) or _last_error() is not _Seen.error


def went_on() -> None:
    """The script works: nothing before has ended it."""
    _Seen.code, _Seen.error = None, _last_error()


@functools.cache
def watch() -> None:
    """Note exit codes from here on; once for the process."""
    sys.exit = _noted(sys.exit)
    for name in ("exit", "quit"):  # there unless Python was started with -S
        if hasattr(builtins, name):
            setattr(builtins, name, _noted(getattr(builtins, name)))


def _noted(leave: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(leave)
    def noted(code: object = None) -> Any:
        if threading.current_thread() is threading.main_thread():  # others end alone
            _Seen.code = code
        return leave(code)

    return noted


def _last_error() -> BaseException | None:
    return getattr(sys, "last_value", None)
