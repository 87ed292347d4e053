"""One stripe as it was at a freeze, shared by its updates and the walk over the frozen table."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from psrt.core.errors import ErrorCode, InternalError, TableError
from psrt.core.types import F32, I32, I64
from psrt.pserver.frozen.frozen_records import FrozenRecords


class FrozenStripe:
    """Rows, buckets of waiting ids, and ids dropped since the freeze before.

    `lock` keeps updates out and lets readers in. The stripe refers to this weakly: a freeze ends
    when it is closed, or when no reference to it is left.
    """

    def __init__(
        self,
        lock: AbstractContextManager[None],
        rows: FrozenRecords,
        waiting: FrozenRecords | None,
        deleted: I64,
        confirm: Callable[[], None],
    ) -> None:
        self.contents = [rows] if waiting is None else [rows, waiting]
        self.deleted = deleted
        self.is_closed = False
        self._lock = lock
        self._rows, self._waiting = rows, waiting
        self._error: TableError | None = None

        def confirm_locked() -> None:
            with lock:
                confirm()

        self.confirm = confirm_locked  # refers to no records: a closed freeze may be confirmed

    # --- by updates, under the stripe's lock ---

    def save(self, slots: I32, buckets: I32 | None = None) -> None:
        """Copy what is pending of these rows and buckets. Without memory the freeze ends, and the
        update goes on."""
        try:
            self._rows.save(slots)
            if self._waiting is not None and buckets is not None:
                self._waiting.save(buckets)
        except MemoryError as error:
            self._fail(error)

    @property
    def has_rows(self) -> bool:
        """True if a row may have to be copied before it changes."""
        return not (self.is_closed or self._rows.is_taken)

    def save_slice(self) -> bool:
        """Copy some rows, as all are about to change; returns True if more are pending."""
        try:
            self._rows.save_slice()
        except MemoryError as error:
            self._fail(error)
        return self.has_rows

    # --- by the walk ---

    def take(self, records: FrozenRecords, out: F32) -> int:
        """Copy the next of `records` to `out`; returns their number."""
        with self._lock:
            self._check()
            return records.take(out)

    def drain(self, records: FrozenRecords) -> list[F32]:
        with self._lock:
            self._check()
            return records.drain()

    def _fail(self, error: MemoryError) -> None:
        self._error = TableError(
            f"a freeze ended, as there is no memory for copies of rows that change ({error}).",
            code=ErrorCode.TABLE_FULL,
            hint="Leave a pserver memory for the rows that change during a freeze.",
        )
        self.is_closed = True

    def _check(self) -> None:
        if self._error is not None:
            raise self._error.again()
        if self.is_closed:
            raise ended()


def ended() -> InternalError:
    return InternalError("a page was asked for after the freeze of its table had ended")
