"""Files named by URL, through fsspec: `s3://…`, `gs://…`, `hdfs://…`, `http://…`, `memory://…`.

fsspec defines the protocols, and reads credentials from the environment and configuration files of
each storage. Its errors become a `DataError` that names the URL. psrt only opens, lists and sizes.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeVar, cast

from psrt.core.errors import ConfigError, DataError, ErrorCode
from psrt.core.extras import missing
from psrt.core.urls import file_system, is_url
from psrt.data.sources.places import DataFile

_T = TypeVar("_T")


def is_pattern(url: str) -> bool:
    """Return whether a URL is a pattern; a question mark begins a query."""
    return "*" in url or "[" in url


def open_url(url: str) -> IO[bytes]:
    """Open the bytes as stored, buffered."""
    return guarded(url, lambda: cast("IO[bytes]", io.BufferedReader(_located(url, "open"))))


def matches(url: str) -> list[str]:
    """Return the URLs that match a pattern, sorted; a URL without one matches itself if it is a
    file."""

    def found() -> list[str]:
        system, path = _system(url)
        if is_pattern(path):
            names = [name for name in system.glob(path) if system.isfile(name)]
        else:
            names = [path] if system.isfile(path) else []
        return sorted(str(system.unstrip_protocol(name)) for name in names)

    return guarded(url, found)


def size_bytes(url: str) -> int:
    """Return bytes as stored; 0 if the storage gives none."""
    return guarded(url, lambda: int(_located(url, "size") or 0))


def guarded(url: str, action: Callable[[], _T]) -> _T:
    """Call `action`; exceptions of any storage become a `DataError` naming the URL."""
    try:
        return action()
    except (ConfigError, DataError):
        raise
    except ImportError as error:
        raise missing(error.name or str(error), "fsspec", f"reading {url}") from error
    except Exception as error:
        raise unreadable(url, error) from error


def unreadable(url: DataFile, error: Exception) -> DataError:
    """Return the error for a file or URL that cannot be opened or read."""
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    place = "at that address" if is_url(url) else "on this host"
    return DataError(
        f"data file {url} cannot be read: {reason}.",
        code=ErrorCode.DATA_MISSING,
        hint=f"Check that it exists {place} and that this user may read it.",
    )


def unwritable(path: Path, error: OSError) -> DataError:
    """Return the error for a path that cannot be written."""
    return DataError(
        f"{path} cannot be written: {error.strerror or error}.",
        code=ErrorCode.DATA_MISSING,
        hint="Check the directory's permissions and free space.",
    )


def _located(url: str, action: str) -> Any:
    system, path = _system(url)
    return getattr(system, action)(path)


def _system(url: str) -> tuple[Any, str]:
    return file_system(url, f"reading {url}")
