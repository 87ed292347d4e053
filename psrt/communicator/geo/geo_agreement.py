"""State that a Geo trainer shares with the pservers, over all of its parameters.

`give` and `take` are the two halves of an exchange, for dense parameters and tables alike; between
them the trainer may go on training. The position read in each pserver's log of changed rows is kept
per table, so that no change is missed and no old one is pulled again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from psrt.communicator.base import Gradient
from psrt.communicator.geo.geo_dense import GeoDense, Kept
from psrt.communicator.geo.geo_state import Counts, copied_state
from psrt.communicator.geo.local_parameters import LocalParameters
from psrt.communicator.requests import Request, Router, StatePage
from psrt.core.counters import Counters
from psrt.core.errors import ConfigError
from psrt.core.types import F32
from psrt.partition.plan import PartitionPlan

NOTHING: Mapping[str, Kept] = MappingProxyType({})


@dataclass(frozen=True)
class Given:
    """Changes other than 0 by parameter, and an array for the answer of every dense parameter.

    A dense change and its answer share an array.
    """

    changes: dict[str, Gradient]
    answer: dict[str, F32]


class Agreement:
    """Used by the training thread only."""

    def __init__(
        self, plan: PartitionPlan, router: Router, local: LocalParameters, counters: Counters
    ) -> None:
        self._router, self._local = router, local
        self._specs = {spec.name: spec for spec in plan.sparse}
        self._tables = local.tables
        if self._tables.keys() != self._specs.keys():
            raise ConfigError(
                f"the trainer holds tables {sorted(self._tables)}, but the plan has "
                f"{sorted(self._specs)}: in Geo a trainer holds all tables"
            )
        self._dense = GeoDense(local.dense)
        self._positions: dict[tuple[int, str], int] = {}
        self._rows_pushed = counters.counter("rows_pushed", "rows this trainer had changed")
        self._rows_pulled = counters.counter("rows_pulled", "rows other trainers had changed")

    @property
    def dense(self) -> dict[str, F32]:
        """The trained arrays, not copied."""
        return self._dense.current()

    def begin(
        self,
        dense: Mapping[str, F32],
        requests: Sequence[Request],
        restored: Mapping[str, Kept] = NOTHING,
    ) -> None:
        """Start training from these parameters and the rows that the requests have received.

        `restored` are the dense parameters that this trainer had in a cut.
        """
        self._dense.begin(dense, restored)
        self._take_rows(requests)

    def copied(self, counts: Counts) -> list[StatePage]:
        """Copies of all that a cut needs of this trainer."""
        return copied_state(self._local, self._dense, counts)

    def give(self, trainers: int, all_rows: bool = False) -> Given:
        """1/`trainers` of the changes made here, which count as agreed on from now on.

        Of tables, only rows touched since the last call, unless `all_rows`.
        """
        dense, answer = self._dense.give(trainers)
        rows = {name: table.give(trainers, all_rows) for name, table in self._tables.items()}
        changed = {name: each for name, each in rows.items() if len(each.ids)}
        self._rows_pushed.add(sum(len(each.ids) for each in changed.values()))
        return Given({**dense, **changed}, answer)

    def empty_answer(self) -> dict[str, F32]:
        """Arrays for an answer without a change."""
        return self._dense.empty_answer()

    def requests(self, answer: Mapping[str, F32], exact: bool) -> list[Request]:
        """Pull dense parameters into `answer`, and the rows others changed since the last answer.

        Dense parameters travel in float32 if `exact`.
        """
        requests = self._router.requests()
        self._router.pull_dense(requests, answer, exact)
        for request in requests:
            if request.bucket == 0:
                self._pull_changed(request)
        return requests

    def take(self, answer: Mapping[str, F32], requests: Sequence[Request]) -> None:
        """Apply the received answer; local changes since `give` are kept on top of it."""
        self._dense.take(answer)
        self._take_rows(requests)

    def count_others(self, steps: int) -> None:
        """Record an exchange after `steps` mini-batches of the other trainers."""
        for table in self._tables.values():
            table.other_steps = steps
        self._local.agreed(steps)

    def _pull_changed(self, request: Request) -> None:
        for name, spec in self._specs.items():
            request.pull_changed(spec, self._positions.get((request.endpoint, name), 0))

    def _take_rows(self, requests: Sequence[Request]) -> None:
        for request in requests:
            for name, changed in request.changed.items():
                self._tables[name].take(changed.ids, changed.rows)
                self._positions[request.endpoint, name] = changed.position
                self._rows_pulled.add(len(changed.ids))
