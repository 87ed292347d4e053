"""Messages between a launcher and its runners: one JSON object per line, with a `kind`.

To a runner: `files` (name → base64), `start`, `signal`, and `beat`, which shows that the launcher
lives. From a runner: `here`, `started` (pid), `output` (stream 1 or 2), `result` (the text of a
ready file or report), and `ended` (code, −n = signal n).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, TypeAlias

Message: TypeAlias = dict[str, Any]

BEAT_S = 10.0
"""Time between two `beat`s of a launcher."""

SILENCE_S = 300.0
"""Time without any message after which a runner takes its launcher for dead."""


def packed(kind: str, **fields: Any) -> bytes:
    """Return a message as a line."""
    return json.dumps({"kind": kind, **fields}).encode() + b"\n"


def message_in(line: bytes) -> Message:
    """Return the message of a line; raises `ValueError` for anything else."""
    try:
        message = json.loads(line)
    except ValueError:
        message = None
    if not isinstance(message, dict) or not isinstance(message.get("kind"), str):
        raise ValueError(f"not a message between a launcher and a runner: {line[:80]!r}")
    return message


def text_of(raw: bytes) -> str:
    """Return any bytes as text that `bytes_of` turns back, also parts of characters."""
    return raw.decode(errors="surrogateescape")


def bytes_of(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def files_field(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the field of a `files` message; `files_of` is the inverse."""
    return {name: base64.b64encode(content).decode() for name, content in files.items()}


def files_of(field: Mapping[str, str]) -> dict[str, bytes]:
    return {name: base64.b64decode(text) for name, text in field.items()}
