"""`paddle.compat`: what programs for two Pythons ask for."""

from __future__ import annotations

import math
from typing import Any

long_type = int_type = int


def to_text(obj: Any, encoding: str = "utf-8", inplace: bool = False) -> Any:
    """Return bytes as text, in lists and sets, too; other values as they are."""
    return _converted(obj, lambda v: v.decode(encoding) if isinstance(v, bytes) else v, inplace)


def to_bytes(obj: Any, encoding: str = "utf-8", inplace: bool = False) -> Any:
    """Return text as bytes, in lists and sets, too; other values as they are."""
    return _converted(obj, lambda v: v.encode(encoding) if isinstance(v, str) else v, inplace)


def round(x: float, d: int = 0) -> float:
    """Return x rounded to `d` digits, halves away from zero."""
    scale = 10.0**d
    return math.copysign(math.floor(abs(x) * scale + 0.5), x) / scale if x else 0.0


def floor_division(x: Any, y: Any) -> Any:
    """Return x // y."""
    return x // y


def get_exception_message(exc: BaseException) -> str:
    """Return the text of an error."""
    return str(exc)


def _converted(obj: Any, convert: Any, inplace: bool) -> Any:
    if isinstance(obj, list):
        made = [convert(item) for item in obj]
        if inplace:
            obj[:] = made
        return obj if inplace else made
    if isinstance(obj, set):
        changed = {convert(item) for item in obj}
        if inplace:
            obj.clear()
            obj |= changed
        return obj if inplace else changed
    return convert(obj)


__all__ = ["floor_division", "get_exception_message", "int_type", "long_type", "round"]
__all__ += ["to_bytes", "to_text"]
