"""The limit of the memory of all tables of a pserver.

It is checked before a table is made and before a push is admitted, so a call that is refused has
changed nothing. At the limit, rows that exist are read and updated as before. Calls that are under
way at the same moment are not counted yet, so their rows may exceed the limit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from psrt.core.errors import ErrorCode, TableError
from psrt.core.specs import DenseTableSpec, TableSpec
from psrt.pserver.tables.stripe_router import RoutedIds
from psrt.pserver.tables.two_part_table import RowsTable

NO_LIMIT = 0
MOST_TABLES = 1 << 16
_INDEX_BYTES = 16  # of a row: its hash, and its cell in a leaf that is half full


class MemoryLimit:
    """`limit_bytes` of all tables, NO_LIMIT = any; `used` counts them now. Any thread may call.

    `_room` is a lower bound of what is left: it shrinks by the most that each push may need, and is
    counted anew when it is used up.
    """

    def __init__(self, limit_bytes: int, used: Callable[[], int]) -> None:
        self.limit_bytes, self._used = limit_bytes, used
        self._lock = threading.Lock()
        self._room = 0

    def check_table(self, spec: TableSpec, tables: int, used_bytes: int) -> None:
        """Raise `TableError` if a table does not fit behind `tables` of `used_bytes` together."""
        if tables >= MOST_TABLES:
            raise _full(spec, f"there are {tables} tables, the most that a pserver has")
        size_bytes = 4 * spec.size if isinstance(spec, DenseTableSpec) else 0
        if self.limit_bytes and used_bytes + size_bytes > self.limit_bytes:
            raise _full(spec, f"with it, tables would need {self._of(used_bytes + size_bytes)}")

    def check_rows(self, pushes: Iterable[tuple[RowsTable, RoutedIds]]) -> None:
        """Raise `TableError` if rows that do not exist yet, and are pushed, do not fit."""
        if not self.limit_bytes:
            return
        for table, rows in pushes:
            most = _row_bytes(table) * len(rows.ids)
            if not self._take(most):
                self._count_anew(table, rows)

    def _take(self, size_bytes: int) -> bool:
        with self._lock:
            fits = size_bytes <= self._room
            self._room -= size_bytes if fits else 0
            return fits

    def _count_anew(self, table: RowsTable, rows: RoutedIds) -> None:
        missing = [part.missing(rows.elsewhere()) for part in table.parts]
        parts = zip(table.parts, missing, strict=True)
        needed = sum(count * (part.layout.row_bytes + _INDEX_BYTES) for part, count in parts)
        used = self._used()
        if needed and used + needed > self.limit_bytes:
            raise TableError(
                f"a push with {max(missing)} new ids of table {table.spec.name!r} was refused, and "
                f"nothing of it was applied: tables have {self._of(used)}.",
                code=ErrorCode.TABLE_FULL,
                hint=_HINT,
            )
        with self._lock:
            self._room = max(0, self.limit_bytes - used - needed)

    def _of(self, size_bytes: int) -> str:
        return f"{size_bytes:,} bytes, and max_table_mib allows {self.limit_bytes:,}"


_HINT = (
    "Use more pservers, limit the tables by max_rows or max_bytes of their lifecycle, or raise "
    "max_table_mib; with cuts, --resume goes on from the newest one."
)


def _full(spec: TableSpec, why: str) -> TableError:
    return TableError(
        f"table {spec.name!r} was refused, and none of this call was made: {why}.",
        code=ErrorCode.TABLE_FULL,
        hint=_HINT,
    )


def _row_bytes(table: RowsTable) -> int:
    return sum(part.layout.row_bytes + _INDEX_BYTES for part in table.parts)
