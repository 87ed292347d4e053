"""The text of a program within that of another, as JSON: the attribute `body` of an op.

A string in strings would double in length with each level.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

_BODY = "body"


def body_as_lines(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields of a record as they are written."""
    return _with_body(fields, _lines_of)


def body_as_text(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields of a record as they were read; a text, as older programs have it, stays as it is.

    Raises `ValueError` or `TypeError` for a body that is no text of a program.
    """
    return _with_body(fields, _text_of)


def _with_body(fields: dict[str, Any], changed: Callable[[Any], Any]) -> dict[str, Any]:
    attrs = fields.get("attrs")
    if not isinstance(attrs, dict) or _BODY not in attrs:
        return fields
    return fields | {"attrs": attrs | {_BODY: changed(attrs[_BODY])}}


def _lines_of(text: str) -> list[Any]:
    """Return the text as a list: its first line, then pairs of a word and fields."""
    head, *lines = text.removesuffix("\n").split("\n")
    parts = (line.partition(" ") for line in lines)
    return [head, *([word, json.loads(rest)] for word, _, rest in parts)]


def _text_of(lines: Any) -> str:
    """Inverse of `_lines_of`."""
    if isinstance(lines, str):
        return lines
    head, *pairs = lines
    shown = [f"{word} {json.dumps(fields, ensure_ascii=False)}" for word, fields in pairs]
    return "\n".join([head, *shown, ""])


__all__ = ["body_as_lines", "body_as_text"]
