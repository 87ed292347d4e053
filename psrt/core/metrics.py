"""Counters, gauges and timers, registered by name with one help line and a unit.

A registry belongs to one daemon or test, never to the process. Increments take a lock per metric:
they happen a few times per frame, not per row.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field


@dataclass
class Metric:
    """One named value; `kind` is counter, gauge or timer (a timer also counts its events)."""

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

    def set(self, value: float) -> None:
        with self._lock:
            self.value = value

    def time(self) -> Timing:
        """A context manager that adds the seconds its block took."""
        return Timing(self)


class Timing:
    """One block that is timed, whether it ends well or not."""

    def __init__(self, timer: Metric) -> None:
        self._timer, self._started = timer, 0.0

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(self, *ended: object) -> None:
        self._timer.add(time.perf_counter() - self._started)


class Registry:
    """All metrics of one daemon or trainer."""

    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {}
        self._lock = threading.Lock()

    def counter(self, name: str, help: str) -> Metric:
        return self._get(name, "counter", help)

    def gauge(self, name: str, help: str) -> Metric:
        return self._get(name, "gauge", help)

    def timer(self, name: str, help: str) -> Metric:
        return self._get(name, "timer", help)

    def snapshot(self) -> dict[str, float]:
        """Values by name; a timer adds `<name>_events`."""
        with self._lock:
            metrics = list(self._metrics.values())
        values = {metric.name: metric.value for metric in metrics}
        values |= {f"{m.name}_events": float(m.events) for m in metrics if m.kind == "timer"}
        return values

    def _get(self, name: str, kind: str, help: str) -> Metric:
        with self._lock:
            metric = self._metrics.setdefault(name, Metric(name, kind, help))
        if metric.kind != kind:
            raise ValueError(f"metric {name} is a {metric.kind}, not a {kind}")
        return metric
