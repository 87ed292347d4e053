"""Errors of updates that ended before all tables had them."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from psrt.core.errors import ErrorCode, InternalError, PsrtError, TableError
from psrt.pserver.serving.parts import Push

log = logging.getLogger("psrt.pserver")

_NAMES_SHOWN = 4
_IN_PART = "A part of it may have been applied."


def unfinished(subject: str, pushes: Sequence[Sequence[Push]], error: Exception) -> PsrtError:
    """Log `error` and return the one that calls waiting for `pushes` get."""
    failed = f"{subject} could not be applied to {_names(pushes)}"
    if isinstance(error, MemoryError):
        failure: PsrtError = TableError(
            f"{failed}: there is no memory ({str(error) or 'none is left'}). {_IN_PART}",
            code=ErrorCode.TABLE_FULL,
            hint="Give the job more pservers, or the host of this one more memory.",
        )
    elif isinstance(error, PsrtError):
        message = f"{failed}: {error.message} {_IN_PART}"
        failure = type(error)(message, code=error.code, hint=error.hint)
    else:
        failure = InternalError(f"{failed}: {error!r}.")
    log.error("%s", failure, exc_info=error if isinstance(failure, InternalError) else None)
    return failure


def _names(pushes: Sequence[Sequence[Push]]) -> str:
    names = sorted({push.table.spec.name for each in pushes for push in each})
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return f"{', '.join(map(repr, names[:_NAMES_SHOWN]))}{more}" if names else "no table"
