"""Counters and timers, registered by name with one help line.

A `Counters` belongs to one daemon, trainer or test, never to the process. Each counter has a lock:
increments happen a few times per frame, not per row. Units are in names (`wait_s`).
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field


@dataclass
class Counter:
    """One named value; `kind` is counter or timer (a timer also counts its events)."""

    name: str
    kind: str
    help: str
    value: float = 0.0
    events: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, amount: float = 1.0) -> None:
        with self._lock:
            self.value += amount
            self.events += 1

    def time(self) -> TimedBlock:
        """Return a context manager that adds the seconds its block takes."""
        return TimedBlock(self)


class TimedBlock:
    """One block that is timed, whether it returns or raises."""

    def __init__(self, timer: Counter) -> None:
        self._timer, self._started = timer, 0.0

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(self, *ended: object) -> None:
        self._timer.add(time.perf_counter() - self._started)


class Counters:
    """All counters of one daemon or trainer, by name."""

    def __init__(self) -> None:
        self._counters: dict[str, Counter] = {}
        self._lock = threading.Lock()

    def counter(self, name: str, help: str) -> Counter:
        return self._get(name, "counter", help)

    def timer(self, name: str, help: str) -> Counter:
        return self._get(name, "timer", help)

    def snapshot(self) -> dict[str, float]:
        """Values by name; a timer adds `<name>_events`."""
        with self._lock:
            counters = list(self._counters.values())
        values = {counter.name: counter.value for counter in counters}
        values |= {f"{c.name}_events": float(c.events) for c in counters if c.kind == "timer"}
        return values

    def _get(self, name: str, kind: str, help: str) -> Counter:
        with self._lock:
            counter = self._counters.setdefault(name, Counter(name, kind, help))
        if counter.kind != kind:
            raise ValueError(f"{name} is a {counter.kind}, not a {kind}")
        return counter
