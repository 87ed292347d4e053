"""The metrics of a pserver, named by the stops on a gradient's path (admit, apply, version).

With them, what STATUS shows besides counters: errors by code, and staleness by trainer.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from psrt.core.counters import Counter, Counters
from psrt.core.errors import PsrtError
from psrt.observe.error_counts import ErrorCounts

_STALENESS_BOUNDS = (0, 1, 3, 7, 15, 31)


class Meters:
    """The metrics of one service; `counters` has them all."""

    def __init__(self) -> None:
        self.counters, self.errors = (counters := Counters()), ErrorCounts()
        self.calls = counters.counter("pserver_calls", "calls handled")
        self.refused = counters.counter("pserver_calls_refused", "calls answered with an error")
        self.pushes = counters.counter("pserver_pushes", "pushes admitted")
        self.repeats = counters.counter(
            "pserver_pushes_repeated", "pushes that were admitted before and not applied again"
        )
        self.rounds = counters.counter("pserver_rounds", "synchronous rounds applied")
        self.waited = counters.timer("pserver_round_wait_s", "seconds calls waited for a round")
        self.met = counters.timer("pserver_meet_wait_s", "seconds calls waited on a clock")
        self.apply = counters.timer("pserver_apply_s", "seconds spent in applying gradients")
        self.rows_applied = counters.counter("pserver_rows_applied", "rows updated")
        self.blocks_applied = counters.counter("pserver_blocks_applied", "dense blocks updated")
        self.rows_dropped = counters.counter(
            "pserver_rows_dropped", "rows dropped at the end of their life"
        )
        self.rows_read = counters.counter("pserver_rows_read", "rows read by trainers")
        self.blocks_read = counters.counter("pserver_blocks_read", "dense blocks read by trainers")
        self._staleness = [_staleness(counters, i) for i in range(len(_STALENESS_BOUNDS) + 1)]
        self._rows_of: dict[str, Counter] = {}
        self._of_trainers: dict[int, tuple[int, int, int]] = {}
        self._lock = threading.Lock()

    def pushed(self, table: str, rows: int) -> None:
        """Count rows that a push updates."""
        self.rows_applied.add(rows)
        found = self._rows_of.get(table)
        if found is None:
            new = Counter("rows_of_a_table", "counter", "rows updated")
            found = self._rows_of.setdefault(table, new)
        found.add(rows)

    def refuse(self, error: PsrtError, trainer: int | None = None) -> None:
        """Count a call that is answered with an error, to `trainer` if that is known."""
        self.refused.add()
        self.errors.note(error, trainer)

    def staleness(self, versions: Sequence[int], trainer: int | None = None) -> None:
        """Count gradients by the number of updates since the values they were computed on.

        They are counted for `trainer`, too, if all are of one.
        """
        bins = [bisect_left(_STALENESS_BOUNDS, each) for each in versions]
        for index in set(bins):
            self._staleness[index].add(bins.count(index))
        if trainer is None or not versions:
            return
        with self._lock:
            count, total, _ = self._of_trainers.get(trainer, (0, 0, 0))
            newest = count + len(versions), total + sum(versions), max(versions)
            self._of_trainers[trainer] = newest

    def describe(self) -> dict[str, Any]:
        """Facts for STATUS.

        `pushed_rows` has rows updated by table, `staleness` by trainer: gradients, the sum of their
        staleness, and the worst of the newest push.
        """
        with self._lock:
            of_trainers = dict(self._of_trainers)
        return {
            "counters": self.counters.snapshot(),
            "pushed_rows": {name: int(rows.value) for name, rows in list(self._rows_of.items())},
            "staleness": of_trainers,
            "errors": self.errors.describe(),
        }


def _staleness(counters: Counters, index: int) -> Counter:
    """One bin of the histogram: `pserver_staleness_2_to_3`; the last is `…_32_up`."""
    low = _STALENESS_BOUNDS[index - 1] + 1 if index else 0
    if index == len(_STALENESS_BOUNDS):
        return counters.counter(
            f"pserver_staleness_{low}_up", f"gradients {low} or more versions late"
        )
    high = _STALENESS_BOUNDS[index]
    span = str(low) if low == high else f"{low}_to_{high}"
    words = span.replace("_", " ")
    return counters.counter(f"pserver_staleness_{span}", f"gradients {words} versions late")
