"""Fills tables from a cut on threads of its own, while calls for complete tables go on.

A call for a table that is not complete waits for it, and the table is filled next. A table that
cannot be filled fails all calls that wait, and later ones; `on_failed` gets the error then.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future

from psrt.core.clock import Clock
from psrt.core.errors import ErrorCode, InternalError, PsrtError, UnavailableError
from psrt.core.threads import CrashReport, start_thread
from psrt.pserver.loading.load_order import LoadOrder, NextPage
from psrt.pserver.loading.load_waits import LoadWaits, still_loading
from psrt.pserver.loading.table_load import TableLoad
from psrt.pserver.tables import TableRegistry

log = logging.getLogger("psrt.pserver")

REPORT_S = 5.0
"""Seconds between two lines of the log about tables that are being filled."""


class TableLoader:
    """`threads` threads that end with the last page, and one that watches deadlines.

    `tables.loading` are the tables to wait for, from their creation on; each leaves it when it is
    complete. `on_loaded` is called when none is left.
    """

    def __init__(
        self,
        tables: TableRegistry,
        threads: int,
        clock: Clock,
        crashes: CrashReport,
        on_failed: Callable[[PsrtError], None],
        on_loaded: Callable[[], None],
    ) -> None:
        self._tables, self._count = tables, threads
        self._clock, self._crashes = clock, crashes
        self._on_failed, self._on_loaded = on_failed, on_loaded
        self._order, self._waits = LoadOrder(), LoadWaits()
        self._loads: dict[str, TableLoad] = {}
        self._error: PsrtError | None = None
        self._is_stopped = False
        self._filled, self._began_s = 0, 0.0
        self._fillers, self._is_watched = 0, False
        self._changed = threading.Condition()  # guards all of the above

    def load(self, loads: Sequence[TableLoad]) -> None:
        """Begin to fill tables that exist, and are in `tables.loading`."""
        with self._changed:
            if not self._loads:
                self._filled, self._began_s = 0, self._clock.now()
            self._loads |= {each.name: each for each in loads}
            empty = [
                each for each in loads if self._order.add(each.name, each.pages, each.is_dense)
            ]
        for each in empty:
            self._complete(each.name)
        self._start()

    def wait_for(self, names: Collection[str] | None, deadline_s: float) -> Future[None] | None:
        """A future that ends when these tables are complete, None = all tables; None if they are.

        It fails with `UnavailableError` RECOVERING at the deadline, and with the error of a table
        that cannot be filled.
        """
        if not self._tables.loading:
            return None
        with self._changed:
            loading = self._tables.loading
            missing = loading if names is None else loading.intersection(names)
            if not missing:
                return None
            if self._error is not None:
                raise self._error.again()
            if self._is_stopped:
                raise _stopping()
            self._order.ask(
                sorted(missing) if names is None else filter(missing.__contains__, names)
            )
            future = self._waits.add(missing, deadline_s)
            self._changed.notify_all()
        return future

    def describe(self) -> dict[str, int]:
        """The part of each table that is filled, in percent, for STATUS; empty if all are."""
        with self._changed:
            percents = self._order.percents
            return {name: percents.get(name, 0) for name in sorted(self._tables.loading)}

    def expire(self) -> None:
        """End waits whose deadline has passed."""
        with self._changed:
            late, percents = self._waits.late(self._clock.now()), self._order.percents
        for future, names in late:
            future.set_exception(still_loading(names, percents))

    @property
    def has_failed(self) -> bool:
        """True if a table could not be filled."""
        return self._error is not None

    def stop(self) -> None:
        """End all waits; the threads end after the pages that they put."""
        with self._changed:
            self._is_stopped = True
            waits = self._waits.all()
            self._changed.notify_all()
        for future in waits:
            future.set_exception(_stopping())

    # --- threads ---------------------------------------------------------------------------------

    def _start(self) -> None:
        with self._changed:
            self._changed.notify_all()
            if not self._goes_on:
                return
            missing, self._fillers = self._count - self._fillers, self._count
            was_watched, self._is_watched = self._is_watched, True
        for number in range(missing):
            start_thread(self._fill, f"load {number}", self._crashes)
        if not was_watched:
            start_thread(self._watch, "load deadlines", self._crashes)

    def _fill(self) -> None:
        while (page := self._next()) is not None:
            try:
                self._loads[page.table].put(page.stage, page.number)
            except PsrtError as error:
                self._failed(page.table, error)
            except BaseException as error:
                self._failed(page.table, InternalError(f"table {page.table!r}: {error!r}"))
                raise
            else:
                self._put(page)

    def _next(self) -> NextPage | None:
        """Wait for a page; None when all tables are complete, or filling has ended."""
        with self._changed:
            while self._goes_on:
                page = self._order.take()
                if page is not None:
                    return page
                self._changed.wait()
            self._fillers -= 1
        return None

    @property
    def _goes_on(self) -> bool:
        return bool(self._loads) and self._error is None and not self._is_stopped

    def _put(self, page: NextPage) -> None:
        with self._changed:
            is_complete = self._order.put(page)
            self._changed.notify_all()
        if is_complete:
            self._complete(page.table)

    def _complete(self, name: str) -> None:
        self._loads[name].close()
        with self._changed:
            if self._error is not None:
                return
            self._tables.loaded(name)
            del self._loads[name]
            self._filled += 1
            waits = self._waits.filled(name)
            is_last = not self._loads
            took_s = self._clock.now() - self._began_s
            self._changed.notify_all()
        for future in waits:
            future.set_result(None)
        if is_last:
            log.info("restored %d tables in %.2f s", self._filled, took_s)
            self._on_loaded()

    def _failed(self, name: str, error: PsrtError) -> None:
        with self._changed:
            if self._error is not None:
                return
            self._error = error
            waits = self._waits.all()
            self._changed.notify_all()
        log.error("table %s could not be loaded: %s", name, error)
        for future in waits:
            future.set_exception(error)
        self._on_failed(error)

    def _watch(self) -> None:
        report_s = self._clock.now() + REPORT_S
        while True:
            with self._changed:
                if not self._goes_on:
                    self._is_watched = False
                    return
                left_s = min(self._waits.next_deadline, report_s) - self._clock.now()
                if left_s > 0:
                    self._changed.wait(min(left_s, REPORT_S))
                    continue
            self.expire()
            if self._clock.now() >= report_s:
                report_s = self._clock.now() + REPORT_S
                self._report()

    def _report(self) -> None:
        percents = ", ".join(f"{name} {done} %" for name, done in self.describe().items())
        log.info("loads tables: %s; %d calls wait", percents, len(self._waits))


def _stopping() -> PsrtError:
    return UnavailableError(
        "the pserver is shutting down; it loads no further tables, and calls for them were ended.",
        code=ErrorCode.STOPPING,
        hint="See the end of its log for the reason.",
    )
