"""The metrics of a pserver, named by the stops on a gradient's path (admit, apply, version)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from psrt.core.counters import Counter, Counters

_STALENESS_BOUNDS = (0, 1, 3, 7, 15, 31)


class Meters:
    """The metrics of one service; `counters` has them all."""

    def __init__(self) -> None:
        self.counters = counters = Counters()
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

    def pushed(self, table: str, rows: int) -> None:
        """Count rows that a push updates."""
        self.rows_applied.add(rows)
        found = self._rows_of.get(table)
        if found is None:
            new = Counter("rows_of_a_table", "counter", "rows updated")
            found = self._rows_of.setdefault(table, new)
        found.add(rows)

    def pushed_rows(self) -> dict[str, int]:
        """Rows updated, by table."""
        return {table: int(rows.value) for table, rows in list(self._rows_of.items())}

    def staleness(self, versions: Sequence[int]) -> None:
        """Count gradients by the number of updates since the values they were computed on."""
        bins = [bisect_left(_STALENESS_BOUNDS, each) for each in versions]
        for index in set(bins):
            self._staleness[index].add(bins.count(index))


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
