"""Log set-up for processes: one line per event, as text or JSON, to stderr.

Levels: debug = each message; info = at most once in a few seconds; warning = may heal itself;
error = something was lost.

Names and bytes of strangers come into messages. So control characters are escaped, further lines
are indented, long messages are cut, and messages that repeat are counted instead of written.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import TextIO

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")

MOST_CHARACTERS = 8000
"""Characters of a message, without its traceback."""
MOST_ALIKE = 100
"""Messages of one place in the code that are written within `ALIKE_S`; errors are all written."""
ALIKE_S = 10.0

_MOST_PLACES = 1000  # whose messages are counted; more come only from formatted templates
# All but newline and tab; the last two groups turn the direction of a terminal's text.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


_fields: dict[str, str | int] = {}


def configure(
    role: str, level: str = "info", stream: TextIO | None = None, form: str = "text"
) -> None:
    """Send the `psrt` loggers to `stream` (stderr).

    As text, a line is `time role level message`. As json, it is an object with these fields, that
    of the logger, and those of `add_fields`; times are in UTC.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    line = f"%(asctime)s {role} %(levelname)s %(message)s"
    text = _TextLines(line, "%Y-%m-%dT%H:%M:%S")
    handler.setFormatter(text if form == "text" else _JsonLines(role))
    handler.addFilter(_LimitAlike())
    root = logging.getLogger("psrt")
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False


def add_fields(**fields: str | int) -> None:
    """Add `fields` to all lines of this process that are JSON, such as job="ctr"."""
    _fields.update(fields)


def _bounded(message: str) -> str:
    excess = len(message) - MOST_CHARACTERS
    return f"{message[:MOST_CHARACTERS]}… ({excess:,} more characters)" if excess > 0 else message


class _JsonLines(logging.Formatter):
    """One JSON object a line; characters that could harm a terminal are escaped by JSON."""

    def __init__(self, role: str) -> None:
        super().__init__()
        self._role = role

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC)
        event: dict[str, str | int] = {
            "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "role": self._role,
            "logger": record.name,
            "message": _bounded(record.getMessage()),
        }
        if record.exc_info:
            event["exception"] = self.formatException(record.exc_info)
        return json.dumps(event | _fields)


class _TextLines(logging.Formatter):
    """Text of which only the first line of an event begins at the margin."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = _bounded(record.message)
        return super().formatMessage(record)

    def format(self, record: logging.LogRecord) -> str:
        escaped = _CONTROL.sub(_escaped, super().format(record))
        return escaped.replace("\n", "\n    ")


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


class _LimitAlike(logging.Filter):
    """Leaves out what one place in the code writes too often; the next line names the number."""

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[tuple[str, str], tuple[float, int]] = {}  # begin of a period, count

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is written; logging holds the handler's lock only later."""
        if record.levelno >= logging.ERROR:
            return True
        place = record.name, str(record.msg)
        begun, count = self._places.get(place, (record.created, 0))
        if record.created - begun >= ALIKE_S:
            begun = record.created
            left_out, count = max(0, count - MOST_ALIKE), 0
            if left_out:
                record.msg = f"{record.getMessage()} ({left_out:,} messages like this left out)"
                record.args = ()
        if len(self._places) >= _MOST_PLACES:
            self._places.clear()
        self._places[place] = begun, count + 1
        return count < MOST_ALIKE
