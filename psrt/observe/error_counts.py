"""Errors of a process by code: their number, and the newest of each with its hint.

There is one record a code, so the memory is bounded whatever callers send.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from psrt.core.errors import ErrorCode, PsrtError

MOST_LETTERS = 500
"""Of a message or hint; messages may name what a caller has sent."""


class ErrorCounts:
    """Errors by code; any thread may call. `now` is the time in seconds, on any scale."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._records: dict[ErrorCode, dict[str, Any]] = {}

    def note(self, error: PsrtError, trainer: int | None = None) -> None:
        """Count an error; `trainer` is the caller that got it, None = unknown."""
        now_s = self._now()
        with self._lock:
            before = self._records.get(error.code)
            self._records[error.code] = {
                "code": error.code.name,
                "count": 1 if before is None else before["count"] + 1,
                "message": error.message[:MOST_LETTERS],
                "hint": error.hint[:MOST_LETTERS],
                "trainer": trainer,
                "at_s": now_s,
            }

    def describe(self) -> list[dict[str, Any]]:
        """A record per code, the newest first; `age_s` is the time since its newest error."""
        now_s = self._now()
        with self._lock:
            records = sorted(self._records.values(), key=lambda each: -each["at_s"])
        return [_aged(each, now_s) for each in records]


def _aged(record: dict[str, Any], now_s: float) -> dict[str, Any]:
    facts = {name: value for name, value in record.items() if name != "at_s"}
    return {**facts, "age_s": round(now_s - record["at_s"], 3)}
