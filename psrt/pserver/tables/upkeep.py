"""Tables kept within their limits beside training, and shrunk when somebody asks.

`SweepSchedule` decides when a table is looked through (pure); `Upkeep` does it, in a thread of its
own that ends with `stop`, or in the calling thread for a shrink. A sweep rests between slices for
as long as it worked, so it takes half a core at most.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from psrt.core.clock import hours_since_1970
from psrt.core.errors import WireError
from psrt.core.specs import Lifecycle, SparseTableSpec
from psrt.core.threads import CrashReport, start_thread
from psrt.pserver.tables.lifecycle import (
    Dropped,
    by_age,
    by_memory,
    by_shrink,
    is_too_narrow,
    rows_too_many,
)
from psrt.pserver.tables.meters import Meters
from psrt.pserver.tables.sweeping import Pause, ages, sweep
from psrt.pserver.tables.two_part_table import RowsTable

log = logging.getLogger("psrt.pserver")

LOOK_S = 1.0
"""Between two looks at all tables: a table may pass its `max_bytes` by what comes in meanwhile."""

LONGEST_WITHOUT = 1 << 27
"""Of the time of a table: after so much of it all rows are gone through, or ages beyond 2³⁰ would
count as none (`row_lives.pull_along_`)."""

_EVERY = 8  # a row past its time is found within an eighth of that time
_KEPT_OF_CAP = 15 / 16  # what a sweep for memory leaves, or the next look would find it full again
_ANSWERS_KEPT = 64
_WORK_S = 0.005  # a slice is 0.1 ms: to sleep and be woken after each would cost as much again


@dataclass
class SweepSchedule:
    """When one table is looked through for rows past their time: (time, hour) → due or not.

    `time` is the table's (`SparseTable.time`).
    """

    life: Lifecycle
    time: int = 0
    hour: int = 0

    def is_due(self, time: int, hour: int) -> bool:
        """Whether an eighth of a limit, or LONGEST_WITHOUT, has passed since this last said so."""
        rounds, days = self.life.ttl_rounds, self.life.ttl_days
        longest = max(1, rounds // _EVERY) if rounds else LONGEST_WITHOUT
        by_rounds = time - self.time >= longest
        by_days = days > 0 and hour - self.hour >= max(1, round(days * 24 / _EVERY))
        if by_rounds or by_days:
            self.time, self.hour = time, hour
        return by_rounds or by_days


_Asked: TypeAlias = tuple[int, int, tuple[str, ...], bool]
"""Of one SHRINK: trainer, number, names of tables, whether it is a dry run."""


class Upkeep:
    """`tables` gives the sparse tables there are; any thread may call `shrink`.

    `job_time` is how far the job is, in rounds or mini-batches of all trainers: by it rows age also
    where a pserver has nothing of what is pushed. Without it a table knows of its own updates only.
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
        self._rhythms: dict[str, SweepSchedule] = {}
        self._answers: OrderedDict[_Asked, dict[str, Dropped]] = OrderedDict()
        self._warned: set[str] = set()  # tables whose limit is too narrow
        self._sweeping = threading.Lock()  # one sweep at a time
        self._crashes: CrashReport | None = None
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()

    def start(self, crashes: CrashReport) -> None:
        """Look at the tables by and by, from when one has a limit that needs it."""
        self._crashes = crashes
        self.tables_came()

    def tables_came(self) -> None:
        """There may be new tables."""
        with self._sweeping:
            limited = [table for table in self._tables() if _is_limited(table.spec)]
            self._warn([table for table in limited if table.spec.name not in self._warned])
            if limited and self._crashes is not None and self._thread is None:
                self._thread = start_thread(self._look_by_and_by, "upkeep", self._crashes)

    def stop(self) -> None:
        self._stopped.set()

    def look(self, pause: Pause = lambda: None) -> dict[str, Dropped]:
        """Drop what is past its time or beyond the memory of its table; what that was, by table."""
        dropped: dict[str, Dropped] = {}
        for table in self._tables():
            if _is_limited(table.spec):
                with self._sweeping:
                    found = self._look_at(table, pause)
                if found.total:
                    self._meters.rows_dropped.add(found.total)
                    dropped[table.spec.name] = found
        return dropped

    def shrink(
        self, names: Sequence[str], number: int, dry_run: bool, trainer: int = 0
    ) -> dict[str, Dropped]:
        """Decay scores and drop rows below the least one, with those past their time; by table.

        Of the tables `names`, all if there are none. A call that `trainer` repeats, which its
        `number` tells, is answered as before; one that asks for something else is none.
        """
        if number == 0:
            raise WireError(
                f"trainer {trainer} sent a SHRINK without a number; nothing was dropped.",
                hint="shrink.number is drawn for every call, so that a repeated one is known.",
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
        sentence = by_shrink(table.spec, table.time(self._job_time()), self._hours())
        pause = _Rest(self._stopped)
        dropped = sweep(table, sentence, pause, decay=life.decay, dry_run=dry_run)
        if not dry_run:
            self._meters.rows_dropped.add(dropped.total)
        return dropped

    def _look_at(self, table: RowsTable, pause: Pause) -> Dropped:
        spec, hour, now = table.spec, self._hours(), table.time(self._job_time())
        assert spec.lifecycle is not None, spec.name
        dropped = Dropped()
        rhythm = self._rhythms.setdefault(spec.name, SweepSchedule(spec.lifecycle, hour=hour))
        if rhythm.is_due(now, hour):
            dropped.merge(sweep(table, by_age(spec, now, hour), pause))
        if _too_many(table, 1.0):
            surplus, now = _too_many(table, _KEPT_OF_CAP), table.time(self._job_time())
            oldest = by_memory(ages(table, now, pause), surplus, now, hour)
            dropped.merge(sweep(table, oldest, pause))
        return dropped

    def _warn(self, tables: Iterable[RowsTable]) -> None:
        """Say of which `tables` the memory is too little, once."""
        for table in tables:
            self._warned.add(table.spec.name)
            limit = _share_of_memory(table)
            if is_too_narrow(*limit, table.empty_bytes):
                log.warning(
                    "table %s may take %d bytes on this pserver, and its index takes %d without "
                    "any row; rows get half of the limit beside the index. Raise max_bytes of its "
                    "lifecycle, or start the pserver with fewer stripes.",
                    *(table.spec.name, math.prod(limit), table.empty_bytes),
                )

    def _look_by_and_by(self) -> None:
        while not self._stopped.wait(LOOK_S):
            self.look(_Rest(self._stopped))


class _Rest:
    """A pause as long as the time since the last one ended, once that is worth a pause."""

    def __init__(self, stopped: threading.Event) -> None:
        self._stopped = stopped
        self._began_s = time.monotonic()

    def __call__(self) -> None:
        worked_s = time.monotonic() - self._began_s
        if worked_s >= _WORK_S:
            self._stopped.wait(worked_s)
            self._began_s = time.monotonic()


def _is_limited(spec: SparseTableSpec) -> bool:
    """Whether rows may end without a shrink."""
    life = spec.lifecycle
    return life is not None and bool(life.ttl_rounds or life.ttl_days or life.max_bytes)


def _share_of_memory(table: RowsTable) -> tuple[int, float]:
    """The limit of the whole table, and which part of it this share of the table may take."""
    spec = table.spec
    assert spec.lifecycle is not None, spec.name
    share = (spec.last_shard - spec.first_shard) / spec.virtual_shards
    return spec.lifecycle.max_bytes, share


def _too_many(table: RowsTable, part: float) -> int:
    """Rows to drop for this share of the table to need `part` of its memory."""
    max_bytes, share = _share_of_memory(table)
    return rows_too_many(max_bytes, part * share, table.rows, table.nbytes, table.empty_bytes)
