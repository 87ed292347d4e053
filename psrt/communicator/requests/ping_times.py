"""The times at which a trainer calls pservers that it has not heard of for a while; pure."""

from __future__ import annotations

LEAST_S = 0.01
"""The shortest wait."""


class PingTimes:
    """A call to a pserver is due `every_s` after the last one, or after an answer of it.

    Any thread may call this.
    """

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._due_s: dict[int, float] = {}

    def add(self, numbers: range, now: float) -> None:
        """Call pservers `numbers`, too, from now on."""
        for number in numbers:
            self._due_s.setdefault(number, now + self._every_s)

    def answered(self, number: int, now: float) -> None:
        """Put off the call to a pserver that has answered another one."""
        if number in self._due_s:
            self._due_s[number] = now + self._every_s

    def due(self, now: float) -> list[int]:
        """The pservers to call now; each is due again later."""
        found = sorted(number for number, due_s in list(self._due_s.items()) if due_s <= now)
        self._due_s |= dict.fromkeys(found, now + self._every_s)
        return found

    def wait_s(self, now: float) -> float:
        """Seconds until a call may be due."""
        first_s = min(list(self._due_s.values()), default=now + self._every_s)
        return min(self._every_s, max(LEAST_S, first_s - now))
