"""What a Geo trainer has agreed on with the pservers, over all of its parameters.

`give` and `take` are the two halves of an exchange, for dense parameters and tables alike; between
them the trainer may go on training. Knows for every table of every pserver up to where its log of
changed rows was read, so that no change is missed and none is pulled for ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from psrt.communicator.base import Gradient
from psrt.communicator.geo.geo_dense import GeoDense
from psrt.communicator.geo.geo_table import GeoTable
from psrt.communicator.requests import Request, Router
from psrt.core.counters import Counters
from psrt.core.errors import ConfigError
from psrt.core.types import F32
from psrt.partition.plan import PartitionPlan


class LocalParameters(Protocol):
    """What a trainer trains by itself. Called between two steps, by the training thread."""

    @property
    def tables(self) -> Mapping[str, GeoTable]:
        """Every sparse table of the plan."""
        ...

    def dense(self, name: str) -> F32:
        """The array a dense parameter is trained in, contiguous; it is changed in place."""
        ...

    def agreed(self, other_steps: int) -> None:
        """Dense parameters were changed. Learning-rate schedules shall be `other_steps` further
        than the updates made here: the mini-batches of the other trainers."""
        ...


@dataclass(frozen=True)
class Given:
    """`changes` by parameter, those that are not 0, and `room` for the answer: an array for every
    dense parameter, which a change shares with its answer."""

    changes: dict[str, Gradient]
    room: dict[str, F32]


class Agreement:
    """Belongs to the training thread."""

    def __init__(
        self, plan: PartitionPlan, router: Router, own: LocalParameters, counters: Counters
    ) -> None:
        self._router, self._own = router, own
        self._specs = {spec.name: spec for spec in plan.sparse}
        self._tables = own.tables
        if self._tables.keys() != self._specs.keys():
            raise ConfigError(
                f"the trainer holds tables {sorted(self._tables)}, but the plan has "
                f"{sorted(self._specs)}: in Geo a trainer holds all tables"
            )
        self._dense = GeoDense(own.dense)
        self._positions: dict[tuple[int, str], int] = {}
        self._rows_pushed = counters.counter("rows_pushed", "rows this trainer had changed")
        self._rows_pulled = counters.counter("rows_pulled", "rows other trainers had changed")

    @property
    def dense(self) -> dict[str, F32]:
        """The arrays that are trained, not copied."""
        return self._dense.current()

    def begin(self, dense: Mapping[str, F32], requests: Sequence[Request]) -> None:
        """Training starts from these parameters and what the requests have brought."""
        self._dense.begin(dense)
        self._take_rows(requests)

    def give(self, trainers: int, all_rows: bool = False) -> Given:
        """1/`trainers` of what has changed here, which is agreed on from now on.

        Of tables, in the rows touched since the last call, or in `all_rows`.
        """
        dense, room = self._dense.give(trainers)
        rows = {name: table.give(trainers, all_rows) for name, table in self._tables.items()}
        changed = {name: each for name, each in rows.items() if len(each.ids)}
        self._rows_pushed.add(sum(len(each.ids) for each in changed.values()))
        return Given({**dense, **changed}, room)

    def room(self) -> dict[str, F32]:
        """Room for an answer without a change."""
        return self._dense.room()

    def requests(self, room: Mapping[str, F32], exact: bool) -> list[Request]:
        """Ask for all dense parameters, in float32 if `exact`, and the rows others have changed
        since the last answer."""
        requests = self._router.requests()
        self._router.pull_dense(requests, room, exact)
        for request in requests:
            if request.section == 0:
                self._ask_for_rows(request)
        return requests

    def take(self, room: Mapping[str, F32], requests: Sequence[Request]) -> None:
        """The answer is there; own progress since `give` stays on top of it."""
        self._dense.take(room)
        self._take_rows(requests)

    def count_others(self, steps: int) -> None:
        """The other trainers have made `steps` mini-batches; called when parameters changed."""
        for table in self._tables.values():
            table.other_steps = steps
        self._own.agreed(steps)

    def _ask_for_rows(self, request: Request) -> None:
        for name, spec in self._specs.items():
            request.pull_changed(spec, self._positions.get((request.endpoint, name), 0))

    def _take_rows(self, requests: Sequence[Request]) -> None:
        for request in requests:
            for name, changed in request.changed.items():
                self._tables[name].take(changed.ids, changed.rows)
                self._positions[request.endpoint, name] = changed.position
                self._rows_pulled.add(len(changed.ids))
