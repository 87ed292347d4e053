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
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TextIO

from psrt.core import tracing

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
_writes_json = False
_NOTHING = nullcontext()
_call: ContextVar[Mapping[str, str | int] | None] = ContextVar("psrt_call", default=None)


def configure(
    role: str, level: str = "info", stream: TextIO | None = None, form: str = "text"
) -> None:
    """Send the `psrt` loggers to `stream` (stderr).

    As text, a line is `time role level message`. As json, it is an object with these fields, that
    of the logger, those of `add_fields`, of the call and of the trace; times are in UTC.
    """
    global _writes_json
    _writes_json = form == "json"
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


def in_call(call: str, caller: int | None = None) -> AbstractContextManager[None]:
    """A block that makes `call`, or handles that of trainer `caller`: its JSON lines say so."""
    return _InCall(call, caller) if _writes_json else _NOTHING


class _InCall:
    def __init__(self, call: str, caller: int | None) -> None:
        self._fields: dict[str, str | int] = {"call": call}
        if caller is not None:
            self._fields["caller"] = caller

    def __enter__(self) -> None:
        self._token = _call.set(self._fields)

    def __exit__(self, *ended: object) -> None:
        _call.reset(self._token)


def follow(logger: str) -> None:
    """Send the warnings of another package's logger where those of psrt go."""
    theirs, ours = logging.getLogger(logger), logging.getLogger("psrt")
    theirs.handlers[:], theirs.propagate = ours.handlers, not ours.handlers
    theirs.setLevel(logging.WARNING)


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
        return json.dumps({**event, **_fields, **(_call.get() or {}), **_trace_fields()})


def _trace_fields() -> dict[str, str]:
    """Trace and span of a traced step, from W3C's text of them."""
    _, *ids = tracing.traceparent().split("-")
    return {"trace_id": ids[0], "span_id": ids[1]} if ids else {}


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
