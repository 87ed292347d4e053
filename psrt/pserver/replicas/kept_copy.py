"""The tables of a part that another pserver serves, as of its last tick.

A whole tick goes into tables of its own, which replace the former ones once all of it has come. Of
other ticks pages are kept until the last one has come, and then applied at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from psrt.core.errors import PsrtError, from_code
from psrt.core.specs import from_plain
from psrt.core.types import Array
from psrt.pserver.decisions import JobIdentity
from psrt.pserver.frozen import FrozenPages
from psrt.pserver.replicas.ticks import TablePage, pages_of
from psrt.pserver.serving import PserverService


class KeptCopy:
    """Tables in a service that does not serve yet; `make` makes one.

    `state` are the decisions of the last tick, `began_at` is the cut that its job began with, 0 =
    none; it `is_over` if no trainer will ask for anything
    again, and `failure` is the error that has ended its job. One thread at a time calls this.
    """

    def __init__(self, make: Callable[[], PserverService]) -> None:
        self.state: dict[str, Any] = {}
        self.began_at = 0
        self.service: PserverService | None = None
        self.is_over = False
        self.failure: PsrtError | None = None
        self._make = make
        self._pages: list[TablePage] = []
        self._coming: PserverService | None = None

    def begin(self, is_whole: bool) -> None:
        """Expect the first piece of a tick."""
        self._pages = []
        self._drop_coming()
        if is_whole:
            self._coming = self._make()

    def add(self, facts: str, arrays: Sequence[Array], is_last: bool) -> None:
        """Take a piece; the last one completes the tick."""
        read = json.loads(facts)
        pages = pages_of(read, arrays)
        if self._coming is None:
            self._pages += pages
        else:
            if "begins" in read:
                begins = read["begins"]
                specs = [from_plain(each) for each in begins["specs"]]
                self._coming.keep(_job_in(begins["state"]), specs)
            _put(self._coming, pages)
        if is_last:
            self._complete(read["cut"]["state"])
            self.began_at = read["cut"]["began_at"]
            self.is_over, failed = read["cut"]["over"], read["cut"].get("failed")
            self.failure = None if failed is None else from_code(**failed)

    def close(self) -> None:
        """Drop the tables; a service that was taken out runs on."""
        self._drop_coming()
        if self.service is not None:
            self.service.stop()
        self.service = None

    def take_out(self) -> PserverService:
        """The service with the tables of the last tick, which serves from now on."""
        self._drop_coming()
        service, self.service = self.service, None
        assert service is not None, "a copy has had a whole tick"
        return service

    def _complete(self, state: dict[str, Any]) -> None:
        if self._coming is not None:
            former, self.service, self._coming = self.service, self._coming, None
            if former is not None:
                former.stop()
        assert self.service is not None, "the first tick is a whole one"
        _put(self.service, self._pages)
        self.state, self._pages = state, []

    def _drop_coming(self) -> None:
        if self._coming is not None:
            self._coming.stop()
        self._coming = None


def _put(service: PserverService, pages: Sequence[TablePage]) -> None:
    tables = {table.spec.name: table for table in service.tables.all()}
    for name, meta, page in pages:
        table: Any = tables[name]
        table.restore([FrozenPages(meta, [page] if page else [])])


def _job_in(state: dict[str, Any]) -> JobIdentity:
    job = state["job"]
    return JobIdentity(job["id"], job["plan_hash"], job["trainers"], from_plain(job["mode"]))
