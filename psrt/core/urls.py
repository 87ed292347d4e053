"""URLs of files, and the fsspec file systems that they name: `s3://…`, `gs://…`, `memory://…`.

fsspec defines the protocols, and reads credentials from the environment and configuration files of
each storage.
"""

from __future__ import annotations

import re
from typing import Any, cast

from psrt.core.extras import required

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def is_url(path: object) -> bool:
    """Return whether fsspec reads it: a `str` with a `protocol://` of two letters or more."""
    return isinstance(path, str) and _URL.match(path) is not None


def file_system(url: str, purpose: str) -> tuple[Any, str]:
    """Return the fsspec file system of a URL and the path in it.

    Raises `ConfigError` with `purpose` if fsspec is not installed, and what fsspec raises.
    """
    core = required("fsspec.core", "fsspec", purpose)
    return cast("tuple[Any, str]", core.url_to_fs(url))
