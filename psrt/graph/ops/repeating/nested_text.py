"""The text of a program within that of another, as JSON.

A string in strings would double in length with each level.
"""

from __future__ import annotations

import json
from typing import Any


def lines_of(text: str) -> list[Any]:
    """Return the text as a list: its first line, then pairs of a word and fields."""
    head, *lines = text.removesuffix("\n").split("\n")
    parts = (line.partition(" ") for line in lines)
    return [head, *([word, json.loads(rest)] for word, _, rest in parts)]


def text_of(lines: Any) -> str:
    """Inverse of `lines_of`; a text, as older programs have it, stays as it is.

    Raises `ValueError` or `TypeError` for other lists.
    """
    if isinstance(lines, str):
        return lines
    head, *pairs = lines
    shown = [f"{word} {json.dumps(fields, ensure_ascii=False)}" for word, fields in pairs]
    return "\n".join([head, *shown, ""])


__all__ = ["lines_of", "text_of"]
