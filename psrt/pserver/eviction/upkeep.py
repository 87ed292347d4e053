"""Sweeps that keep tables within their limits during training, and shrinks on request.

`Upkeep` sweeps tables when their `SweepSchedule` is due, in a thread of its own that ends with
`stop`, and shrinks them in the calling thread. A sweep rests between slices for as long as it
worked, so it takes half a core at most.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from psrt.core.clock import hours_since_1970
from psrt.core.errors import DeadlineError, WireError
from psrt.core.specs import SparseTableSpec
from psrt.core.threads import CrashReport, start_thread
from psrt.pserver.eviction.policies import (
    Dropped,
    SweepSchedule,
    by_age,
    by_memory,
    by_shrink,
    is_too_narrow,
    rows_too_many,
)
from psrt.pserver.eviction.sweeping import Pause, ages, sweep
from psrt.pserver.tables import Meters, RowsTable

log = logging.getLogger("psrt.pserver")

CHECK_S = 1.0
"""The time between two checks of all tables; a table may pass its `max_bytes` meanwhile."""

_KEPT_OF_CAP = 15 / 16  # the part that a sweep for memory leaves, or the next check finds it full
_ANSWERS_KEPT = 64
_WORK_S = 0.005  # a slice takes 0.1 ms: to sleep and wake after each would cost as much again


_Asked: TypeAlias = tuple[int, int, tuple[str, ...], bool]
"""One SHRINK: trainer, number, names of tables, dry run or not."""


class Upkeep:
    """Sweeps and shrinks the sparse `tables`; any thread may call `shrink`.

    `job_time` returns the progress of the job, in rounds or mini-batches of all trainers. By it
    rows age even on a pserver that gets no pushes; without it a table counts its own updates only.
    """

    def __init__(
        self,
        tables: Callable[[], Iterable[RowsTable]],
        meters: Meters,
        hours: Callable[[], int] = hours_since_1970,
        job_time: Callable[[], int] = lambda: 0,
    ) -> None:
        self._tables, self._meters, self._hours = tables, meters, hours
        self._job_time = job_time
        self._schedules: dict[str, SweepSchedule] = {}
        self._answers: OrderedDict[_Asked, dict[str, Dropped]] = OrderedDict()
        self._warned: set[str] = set()  # tables whose limit is too narrow
        self._sweeping = threading.Lock()  # one sweep at a time
        self._crashes: CrashReport | None = None
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()

    def start(self, crashes: CrashReport) -> None:
        """Start to check the tables, as soon as one of them has a limit."""
        self._crashes = crashes
        self.tables_added()

    def tables_added(self) -> None:
        """Check the limits of new tables."""
        with self._sweeping:
            limited = [table for table in self._tables() if _is_limited(table.spec)]
            self._warn([table for table in limited if table.spec.name not in self._warned])
            if limited and self._crashes is not None and self._thread is None:
                self._thread = start_thread(self._run, "upkeep", self._crashes)

    def stop(self) -> None:
        self._stopped.set()

    @contextlib.contextmanager
    def put_off(self, timeout_s: float = -1) -> Iterator[None]:
        """Wait for a sweep or shrink under way, and keep others out until the end.

        For freezes: every row that a sweep drops or decays would be copied first, and a freeze
        amid a shrink would have rows with decayed scores and others. Raises `DeadlineError` after
        `timeout_s`; −1 = no limit.
        """
        if not self._sweeping.acquire(timeout=timeout_s):
            raise DeadlineError(f"a sweep or shrink did not end within {timeout_s:g} s.")
        try:
            yield
        finally:
            self._sweeping.release()

    def sweep_due(self, pause: Pause = lambda: None) -> dict[str, Dropped]:
        """Drop rows that are expired or beyond the memory limit; return their numbers by table."""
        dropped: dict[str, Dropped] = {}
        for table in self._tables():
            if _is_limited(table.spec):
                with self._sweeping:
                    found = self._sweep_if_due(table, pause)
                if found.total:
                    self._meters.rows_dropped.add(found.total)
                    dropped[table.spec.name] = found
        return dropped

    def shrink(
        self, names: Sequence[str], number: int, dry_run: bool, trainer: int = 0
    ) -> dict[str, Dropped]:
        """Decay scores and drop expired rows and those below the least score, by table.

        Shrinks the tables `names`, or all if it is empty. A repeated call, recognised by its
        `trainer`, `number` and arguments, gets the former answer. Raises `WireError` for number 0.
        """
        if number == 0:
            raise WireError(
                f"trainer {trainer} sent a SHRINK without a number; nothing was dropped.",
                hint="shrink.number is drawn for every call, so that a repeated one is recognised.",
            )
        asked = (trainer, number, tuple(names), dry_run)
        with self._sweeping:
            if asked not in self._answers:
                self._answers[asked] = {
                    table.spec.name: self._shrink(table, dry_run)
                    for table in self._tables()
                    if not names or table.spec.name in names
                }
                while len(self._answers) > _ANSWERS_KEPT:
                    self._answers.popitem(last=False)
            return self._answers[asked]

    def _shrink(self, table: RowsTable, dry_run: bool) -> Dropped:
        life = table.spec.lifecycle
        if life is None:
            return Dropped()
        policy = by_shrink(table.spec, table.time(self._job_time()), self._hours())
        pause = _Rest(self._stopped)
        dropped = sweep(table, policy, pause, decay=life.decay, dry_run=dry_run)
        if not dry_run:
            self._meters.rows_dropped.add(dropped.total)
        return dropped

    def _sweep_if_due(self, table: RowsTable, pause: Pause) -> Dropped:
        spec, hour, now = table.spec, self._hours(), table.time(self._job_time())
        assert spec.lifecycle is not None, spec.name
        dropped = Dropped()
        schedule = self._schedules.setdefault(spec.name, SweepSchedule(spec.lifecycle, hour=hour))
        if schedule.is_due(now, hour):
            dropped += sweep(table, by_age(spec, now, hour), pause)
        if _too_many(table, 1.0):
            surplus, now = _too_many(table, _KEPT_OF_CAP), table.time(self._job_time())
            oldest = by_memory(ages(table, now, pause), surplus, now, hour)
            dropped += sweep(table, oldest, pause)
        return dropped

    def _warn(self, tables: Iterable[RowsTable]) -> None:
        """Log once which `tables` have too little memory."""
        for table in tables:
            self._warned.add(table.spec.name)
            limit = _memory_limit(table)
            if is_too_narrow(*limit, table.empty_bytes):
                log.warning(
                    "table %s may take %d bytes on this pserver, and its index takes %d without "
                    "any row; rows get half of the limit in addition to it. Raise max_bytes of its "
                    "lifecycle, or start the pserver with fewer stripes.",
                    *(table.spec.name, math.prod(limit), table.empty_bytes),
                )

    def _run(self) -> None:
        while not self._stopped.wait(CHECK_S):
            self.sweep_due(_Rest(self._stopped))


class _Rest:
    """A pause as long as the time since the last one ended, if that was long enough."""

    def __init__(self, stopped: threading.Event) -> None:
        self._stopped = stopped
        self._began_s = time.monotonic()

    def __call__(self) -> None:
        worked_s = time.monotonic() - self._began_s
        if worked_s >= _WORK_S:
            self._stopped.wait(worked_s)
            self._began_s = time.monotonic()


def _is_limited(spec: SparseTableSpec) -> bool:
    """Return True if rows may be dropped without a shrink."""
    life = spec.lifecycle
    return life is not None and bool(life.ttl_rounds or life.ttl_days or life.max_bytes)


def _memory_limit(table: RowsTable) -> tuple[int, float]:
    """The limit of the whole table, and the fraction of it for the rows on this pserver."""
    spec = table.spec
    assert spec.lifecycle is not None, spec.name
    fraction = (spec.last_shard - spec.first_shard) / spec.virtual_shards
    return spec.lifecycle.max_bytes, fraction


def _too_many(table: RowsTable, part: float) -> int:
    """The number of rows to drop for the table to take `part` of its memory on this pserver."""
    max_bytes, fraction = _memory_limit(table)
    return rows_too_many(max_bytes, part * fraction, table.rows, table.nbytes, table.empty_bytes)
