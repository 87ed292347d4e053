"""Arrays that a trainer keeps from step to step, as text in its position.

Counters of metrics and running statistics lie in the scope of a trainer, not on pservers. A cut has
them in the trainer's position: compressed, since most buckets of a counter are zero.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from psrt.core.errors import DataError
from psrt.core.types import Array

Plain: TypeAlias = dict[str, Any]

Kept: TypeAlias = Callable[[], Plain]
"""Returns the kept values as JSON; called by a cut only, on any thread."""

_KINDS = "biuf"
_FAST = 1  # level of zlib: a cut waits for it


def nothing_kept() -> Plain:
    """The kept values of a trainer that has none."""
    return {}


def plain_of(arrays: Mapping[str, Array]) -> Plain:
    """Arrays by name as JSON: `dtype`, `shape`, and `zlib`, the compressed bytes in Base64."""
    return {name: _plain(np.ascontiguousarray(values)) for name, values in arrays.items()}


def kept_of(position: str) -> dict[str, Array]:
    """Read the kept arrays of a position, none if it has none.

    Raises `DataError` for arrays that `plain_of` did not write.
    """
    try:
        found = json.loads(position)
    except ValueError:
        return {}
    kept = found.get("kept") if isinstance(found, dict) else None
    try:
        return {str(name): _array(plain) for name, plain in dict(kept or {}).items()}
    except (KeyError, TypeError, ValueError, zlib.error) as error:
        raise DataError(
            f"the cut has kept values that cannot be read ({error}). Nothing was trained.",
            hint="Resume an earlier cut: `psrt checkpoint list DIR` shows them.",
        ) from error


def _plain(values: Array) -> Plain:
    packed = base64.b64encode(zlib.compress(values.tobytes(), _FAST)).decode("ascii")
    return {"dtype": values.dtype.name, "shape": list(values.shape), "zlib": packed}


def _array(plain: Plain) -> Array:
    dtype = np.dtype(str(plain["dtype"]))
    if dtype.kind not in _KINDS:
        raise ValueError(f"dtype {dtype}")
    data = zlib.decompress(base64.b64decode(plain["zlib"], validate=True))
    return np.frombuffer(data, dtype).reshape(plain["shape"]).copy()
