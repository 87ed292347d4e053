"""The directory that a path or URL names."""

from __future__ import annotations

from pathlib import Path

from psrt.core.urls import is_url
from psrt.storage.directory import Directory
from psrt.storage.local_directory import LocalDirectory
from psrt.storage.remote_directory import RemoteDirectory


def directory_at(location: str | Path) -> Directory:
    """Return a directory of a disk, or of any storage of fsspec; `file://` URLs are local paths.

    Raises `ConfigError` if a URL needs a package that is not installed.
    """
    if isinstance(location, str) and location.startswith("file://"):
        return LocalDirectory(Path(location.removeprefix("file://")))
    if is_url(location):
        return RemoteDirectory(str(location))
    return LocalDirectory(Path(location))
