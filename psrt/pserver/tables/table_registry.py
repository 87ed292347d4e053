"""The tables of one pserver by name, created by registration and never removed.

Registration is idempotent, since every trainer registers every table. A second spec that differs is
refused, and then nothing of that call is registered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from psrt.core.clock import hours_since_1970
from psrt.core.errors import ErrorCode, TableError
from psrt.core.specs import DenseTableSpec, TableSpec, differences
from psrt.pserver.tables.change_log import ChangeLog
from psrt.pserver.tables.dense_table import DenseTable
from psrt.pserver.tables.helper_threads import NO_HELPERS, HelperThreads
from psrt.pserver.tables.memory_limit import NO_LIMIT, MemoryLimit
from psrt.pserver.tables.slab_preallocator import SlabPreallocator
from psrt.pserver.tables.sparse_table import SparseTable
from psrt.pserver.tables.two_part_table import RowsTable, TwoPartTable

Table = DenseTable | RowsTable

_NAMES_SHOWN = 8


class TableRegistry:
    """Creates and finds tables; any thread may call.

    `loading` are the tables whose values are still being read: nobody uses them meanwhile.
    `stripes` is the number of stripes of each sparse table, `hours` the time since 1970.
    `preallocator` allocates memory ahead of their rows, `helpers` take part in large requests.
    All tables have `limit_bytes` together. `processes_before` served new tables before, and were
    killed: change logs have other positions than theirs.
    """

    def __init__(
        self,
        stripes: int,
        hours: Callable[[], int] = hours_since_1970,
        preallocator: SlabPreallocator | None = None,
        helpers: HelperThreads = NO_HELPERS,
        limit_bytes: int = NO_LIMIT,
    ) -> None:
        self._stripes = stripes
        self._shared = (hours, preallocator, helpers)
        self._helpers = helpers
        self._tables: dict[str, Table] = {}
        self.loading: frozenset[str] = frozenset()
        self.processes_before = 0
        self._registering = threading.Lock()
        self.limit = MemoryLimit(limit_bytes, lambda: _bytes_of(self._tables.values()))

    def __len__(self) -> int:
        return len(self._tables)

    def register(
        self,
        specs: Sequence[TableSpec],
        compensation: float = 0.0,
        *,
        logs_changes: bool = False,
        are_loaded: bool = True,
        prepare: Callable[[Table], None] = lambda table: None,
    ) -> list[str]:
        """Create the tables of `specs` that do not exist yet; return their names.

        `compensation` is the λ of DC-ASGD for dense tables, 0 = none. With `logs_changes` sparse
        tables log the rows that each trainer changes. `prepare` gets each new table before any
        other call can find it; unless they `are_loaded` by it, all are `loading` then. Raises
        `TableError` for another spec of an existing table, without memory, or over its limit.
        """
        with self._registering:
            known = {name: table.spec for name, table in self._tables.items()}
            for spec in specs:
                _check_conflict(known.setdefault(spec.name, spec), spec)
            missing = {spec.name: spec for spec in specs if spec.name not in self._tables}
            created = self._create_all(missing, compensation, logs_changes)
            for table in created.values():
                prepare(table)
            if not are_loaded:
                self.loading |= created.keys()
            self._tables = {**self._tables, **created}
        return list(created)

    def loaded(self, name: str) -> None:
        """Record that a table has all its values."""
        with self._registering:
            self.loading -= {name}

    def release(self, trainer: int) -> None:
        """Drop everything that tables keep for a trainer, which has completed."""
        for table in self._tables.values():
            table.release(trainer)

    def dense(self, name: str) -> DenseTable:
        table = self._tables.get(name) or self._none(name)
        if not isinstance(table, DenseTable):
            raise self._wrong_kind(name, "sparse", "dense")
        return table

    def sparse(self, name: str) -> RowsTable:
        table = self._tables.get(name) or self._none(name)
        if isinstance(table, DenseTable):
            raise self._wrong_kind(name, "dense", "sparse")
        return table

    def all(self) -> list[Table]:
        return list(self._tables.values())

    def all_sparse(self) -> list[RowsTable]:
        """The sparse tables that have all their values."""
        tables = [table for table in self._tables.values() if table.spec.name not in self.loading]
        return [table for table in tables if not isinstance(table, DenseTable)]

    def describe(self) -> list[dict[str, Any]]:
        """One record per table, for STATUS."""
        return [_describe(table) for table in self._tables.values()]

    def _none(self, name: str) -> NoReturn:
        raise TableError(
            f"table {name!r} is not registered at this pserver, which has {self._names()}; "
            "the call was refused.",
            hint="REGISTER the tables of the partition plan first; compare the plans.",
        )

    def _names(self) -> str:
        names = sorted(self._tables)
        if not names:
            return "no tables yet"
        more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
        return f"{', '.join(names[:_NAMES_SHOWN])}{more}"

    def _create_all(
        self, specs: Mapping[str, TableSpec], compensation: float, logs_changes: bool
    ) -> dict[str, Table]:
        created: dict[str, Table] = {}
        used, count = _bytes_of(self._tables.values()), len(self._tables)
        for name, spec in specs.items():
            self.limit.check_table(spec, count + len(created), used)
            created[name] = self._create(spec, compensation, logs_changes)
            used += created[name].nbytes
        return created

    def _create(self, spec: TableSpec, compensation: float, logs_changes: bool) -> Table:
        try:
            if isinstance(spec, DenseTableSpec):
                return DenseTable(spec, compensation, self._helpers)
            if spec.growth is not None:
                return TwoPartTable(spec, self._stripes, *self._shared)
            log = ChangeLog.behind(self.processes_before) if logs_changes else None
            return SparseTable(spec, self._stripes, log, *self._shared)
        except (MemoryError, OSError, ValueError) as error:
            raise TableError(
                f"there is no memory for table {spec.name!r}: {error}. It was not created.",
                code=ErrorCode.TABLE_FULL,
                hint="Spread the parameters over more pservers.",
            ) from error

    def _wrong_kind(self, name: str, is_kind: str, asked: str) -> TableError:
        return TableError(
            f"table {name!r} is {is_kind}, but the call treats it as {asked}; it was refused.",
            code=ErrorCode.TABLE_SHAPE,
            hint="Parts of kind *_DENSE are for dense blocks, *_ROWS for sparse tables.",
        )


def _check_conflict(registered: TableSpec, spec: TableSpec) -> None:
    if registered != spec:
        raise TableError(
            f"table {spec.name!r} is registered with another spec (registered != asked for): "
            f"{differences(registered, spec)}. The call was refused.",
            code=ErrorCode.TABLE_CONFLICT,
            hint="All trainers must run one program and plan; a new one needs new pservers.",
        )


def _bytes_of(tables: Iterable[Table]) -> int:
    return sum(table.nbytes for table in tables)


def _describe(table: Table) -> dict[str, Any]:
    common = {"name": table.spec.name, "version": table.version, "bytes": table.nbytes}
    if isinstance(table, DenseTable):
        block = {"parameter": table.spec.parameter, "offset": table.spec.offset}
        return {"kind": "dense", **common, **block, "size": table.spec.size}
    spec = table.spec
    shards = {"shards": [spec.first_shard, spec.last_shard], "virtual_shards": spec.virtual_shards}
    return {"kind": "sparse", **common, **shards, **table.describe()}
