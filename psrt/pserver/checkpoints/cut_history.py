"""History of the cuts of one pserver: the newest complete one, one under way, ends by kind.

A cut may be given up by several, at about the same time; it counts once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from psrt.coordinator.part_chain import PartOutcome


@dataclass
class _Written:
    number: int
    began_s: float
    size_bytes: int | None = None


class CutHistory:
    """Begin, size and end of cuts; any thread may call. `now` is the time in seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._writing: _Written | None = None
        self._newest: dict[str, Any] | None = None
        self._given_up: dict[str, Any] | None = None
        self._ends = {"complete": 0, "given_up": 0, "unknown": 0}

    def began(self, number: int) -> None:
        """Record that the tables are frozen for a cut."""
        with self._lock:
            self._writing = _Written(number, self._now())

    def written(self, number: int, size_bytes: int) -> None:
        """Record that the part of this pserver is on disk."""
        with self._lock:
            if self._writing is not None and self._writing.number == number:
                self._writing.size_bytes = size_bytes

    def ended(self, number: int, outcome: PartOutcome, why: str = "") -> None:
        """Record the end of a cut; number 0 is a report for the one under way, whatever that is."""
        if not number:
            return
        if outcome is PartOutcome.GIVEN_UP:
            self.given_up(number, why)
            return
        with self._lock:
            part = self._take(number)
            self._ends["complete" if outcome is PartOutcome.COMPLETE else "unknown"] += 1
            if outcome is PartOutcome.COMPLETE and part is not None:
                self._newest = self._complete(part)

    def given_up(self, number: int, why: str) -> None:
        """Record that a cut was given up; the first reason stays."""
        with self._lock:
            self._take(number)
            if self._given_up is None or self._given_up["number"] != number:
                self._ends["given_up"] += 1
                self._given_up = {"number": number, "why": why, "at_s": self._now()}
            elif not self._given_up["why"]:
                self._given_up["why"] = why

    def describe(self) -> dict[str, Any]:
        """Facts for STATUS; `bytes` are those of the part of this pserver."""
        with self._lock:
            part, now_s = self._writing, self._now()
            writing = part and {
                "number": part.number,
                "for_s": round(now_s - part.began_s, 3),
                "bytes": part.size_bytes,
            }
            newest, given_up = _aged(self._newest, now_s), _aged(self._given_up, now_s)
            ends = dict(self._ends)
        return {"writing": writing, "newest": newest, "given_up": given_up, "ends": ends}

    def _take(self, number: int) -> _Written | None:
        """The part of a cut that is no longer being written."""
        part = self._writing
        if part is None or part.number != number:
            return None
        self._writing = None
        return part

    def _complete(self, part: _Written) -> dict[str, Any]:
        now_s = self._now()
        took_s = round(now_s - part.began_s, 3)
        return {"number": part.number, "bytes": part.size_bytes, "took_s": took_s, "at_s": now_s}


def _aged(record: dict[str, Any] | None, now_s: float) -> dict[str, Any] | None:
    if record is None:
        return None
    facts = {name: value for name, value in record.items() if name != "at_s"}
    return {**facts, "age_s": round(now_s - record["at_s"], 3)}
