"""Freezes and restores of a table whose rows are in stripes.

A freeze waits for updates under way, some milliseconds at most, and keeps new ones out for some
microseconds. A restore fills an empty table from freezes of any number of pservers: it inserts the
records of its own virtual shards and skips the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Protocol
from weakref import ref

from psrt.core.errors import InternalError
from psrt.core.specs import SparseTableSpec
from psrt.core.types import F32, I64
from psrt.kernels.jit import warm_up
from psrt.kernels.tables import RowLayout
from psrt.pserver.frozen.change_marks import CUTS
from psrt.pserver.frozen.frozen_rows import FrozenRows
from psrt.pserver.frozen.frozen_stripe import FrozenStripe
from psrt.pserver.frozen.pages import Meta, Page, facts_of, part_of, rows_of
from psrt.pserver.frozen.restoring import FrozenPages, check_layout, name_of, restore
from psrt.pserver.frozen.update_gate import UpdateGate


class FreezableStripe(Protocol):
    @property
    def buckets(self) -> int:
        """Hash buckets of waiting ids in each virtual shard."""
        ...

    def track_changes(self, consumer: str) -> None: ...

    def freeze(self, is_delta: bool, consumer: str) -> FrozenStripe: ...

    def expect(self, rows: int) -> None: ...

    def put_rows(self, rows: F32) -> None: ...

    def put_waiting(self, buckets: F32) -> None: ...

    def drop(self, ids: I64) -> None: ...


class FreezableRows(ABC):
    """The state of a sparse table as freezes see it; tables add reads and updates."""

    spec: SparseTableSpec
    layout: RowLayout
    version: int
    _time: int  # of the latest update
    _stripes: Sequence[FreezableStripe]
    _shards: Sequence[tuple[int, int]]  # first virtual shard and last + 1 of each stripe
    _hours: Callable[[], int]

    def __init__(self) -> None:
        self._updates = UpdateGate()
        self._freezes: dict[str, Callable[[], FrozenRows | None]] = {}
        self._since: dict[str, int] = {}  # the version that the next delta begins at
        self.restored_from: dict[int, Meta] = {}  # the newest facts by first virtual shard

    @property
    @abstractmethod
    def rows(self) -> int:
        """Rows of the table now."""

    @property
    @abstractmethod
    def refused(self) -> int:
        """Updates of ids that were not admitted."""

    @property
    @abstractmethod
    def logged_to(self) -> int:
        """The position up to which changes are logged; it grows until a restore."""

    def track_changes(self, consumer: str = CUTS) -> None:
        """Record from now on which rows change, so that a consumer can freeze deltas.

        The first delta begins here: freeze the whole table next, or call it after a restore.
        """
        warm_up(["freeze"])
        with self._updates.shut():
            for stripe in self._stripes:
                stripe.track_changes(consumer)
            self._since[consumer] = self.version

    def freeze(self, is_delta: bool = False, consumer: str = CUTS) -> FrozenRows:
        """Fix the present state: rows, ids that wait for admission, and facts of the table.

        Updates go on, and copy rows before they change them. A delta has the rows changed, buckets
        of waiting ids changed and ids dropped since the latest confirmed freeze of the consumer.
        Counts of the ids pulled most and entries of the change log are no part of it. A consumer
        has one freeze at a time. Raises `InternalError` if it has one, or for a delta without
        `track_changes`.
        """
        warm_up(["freeze"])
        with self._updates.shut():
            self._check_freeze(is_delta, consumer)
            stripes = [stripe.freeze(is_delta, consumer) for stripe in self._stripes]
            facts = self._facts(self._since[consumer] if is_delta else None)
            frozen = FrozenRows(facts, stripes, partial(self._confirm, consumer))
            self._freezes[consumer] = ref(frozen)
        return frozen

    def restore(self, sources: Iterable[FrozenPages]) -> None:
        """Fill the table from freezes; of each pserver a full one, then its deltas in order.

        Afterwards reads and further updates have the bits they would have had, for any numbers of
        stripes and pservers. The order of rows in memory is another one. Trainers under Geo get
        every row with their next pull. May be called again with other pages of the same freezes,
        from several threads. Raises `TableError` if a spec or a page does not fit.
        """
        warm_up(["freeze"])
        restore(self, sources)

    def put_page(self, page: Page) -> None:
        """Insert, replace or drop the rows of a page that belong here."""
        name = name_of(self.spec, page, self.layout.words)
        for stripe, shards in zip(self._stripes, self._shards, strict=True):
            records = page[name][part_of(page, *shards)]
            if len(records):
                put = {"rows": stripe.put_rows, "waiting": stripe.put_waiting}
                put.get(name, stripe.drop)(records)

    def put_facts(self, meta: Meta) -> None:
        """Go on from the version, time and counters of a freeze."""
        check_layout(self.spec.name, meta, self.layout)
        with self._updates.shut():
            self.restored_from[meta["spec"]["first_shard"]] = meta
            self.version = max(self.version, meta["version"])
            self._time = max(self._time, meta["time"])
            for stripe, shards in zip(self._stripes, self._shards, strict=True):
                stripe.expect(sum(rows_of(each, *shards) for each in self.restored_from.values()))

    def _refused_before(self) -> int:
        """Refused updates of the tables that this one was restored from."""
        shards = range(self.spec.first_shard, self.spec.last_shard)
        metas = list(self.restored_from.items())
        return sum(meta["refused"] for first, meta in metas if first in shards)

    def _check_freeze(self, is_delta: bool, consumer: str) -> None:
        frozen = self._freezes[consumer]() if consumer in self._freezes else None
        if frozen is not None and frozen.is_open:
            raise InternalError(f"table {self.spec.name!r} is frozen already")
        if is_delta and consumer not in self._since:
            raise InternalError(f"table {self.spec.name!r} has no freeze that a delta could follow")

    def _confirm(self, consumer: str, meta: Meta) -> None:
        if consumer in self._since:
            self._since[consumer] = max(self._since[consumer], meta["version"])

    def _facts(self, since: int | None) -> Meta:
        return facts_of(self.spec, self.version, since) | {
            "time": self._time,
            "refused": self.refused,
            "hour": self._hours(),
            "logged_to": self.logged_to,
            "rows": self.rows,
            "layout": asdict(self.layout),
            "buckets": self._stripes[0].buckets,
        }
