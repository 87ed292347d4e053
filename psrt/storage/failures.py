"""Errors of stored files: damaged, missing, or refused by the storage."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from psrt.core.errors import ErrorCode, PsrtError, StorageError

_ADVICE = {
    errno.ENOSPC: "Make room on that disk, or name a directory on another one.",
    errno.EDQUOT: "Raise the quota of this user, or name a directory on another disk.",
    errno.EROFS: "Name a directory on a file system that is mounted for writing.",
    errno.EACCES: "Give this user the permission, or name another directory.",
    errno.EPERM: "Give this user the permission, or name another directory.",
    errno.EIO: "Do not trust this disk: check it, and name a directory on another one.",
}


def damaged(file: str, what: str) -> StorageError:
    """Return the error for bytes that are not those that were written."""
    return StorageError(
        f"{file} is damaged: {what}. psrt did not use these bytes.",
        code=ErrorCode.FILE_DAMAGED,
        hint="Copy the file again from another place, or use another cut.",
    )


def missing(file: str) -> StorageError:
    """Return the error for a file that does not exist."""
    return StorageError(
        f"{file} does not exist.",
        code=ErrorCode.FILE_MISSING,
        hint="Check the path or URL, or use another cut.",
    )


def refused(file: str, action: str, error: Exception) -> StorageError:
    """Return the error for a storage that fails to `action` ("write", "list", …) a file."""
    number = getattr(error, "errno", None)
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return StorageError(
        f"psrt cannot {action} {file}: {reason}.",
        hint=_ADVICE.get(number or 0, "Check that it can be reached and that this user may do so."),
    )


@contextmanager
def reported(file: str, action: str) -> Iterator[None]:
    """Raise every exception of a disk or of fsspec as an error that names the file."""
    try:
        yield
    except PsrtError:
        raise
    except FileNotFoundError as error:
        raise missing(file) from error
    except Exception as error:
        raise refused(file, action, error) from error
