"""The trainer state of Geo: what a cut needs of a trainer in addition to the pservers' tables.

The first page has counts. The others have pieces of dense parameters, with their optimizer state
and the values last agreed on, and rows that were trained here or have a residual. Rows that only
others trained come from the pservers.

A restored trainer is like one whose last exchange is long ago: it continues with its own values,
and takes the pservers' values in by its first pull. The residual of a trainer that is not in the
resumed job is added to the parameters of another; its optimizer state is dropped.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from psrt.communicator.geo.geo_dense import GeoDense, Kept
from psrt.communicator.geo.geo_table import GeoTable
from psrt.communicator.geo.local_parameters import LocalParameters, UpdateState
from psrt.communicator.requests import StatePage
from psrt.core.errors import ConfigError
from psrt.core.types import F32, Shape

PAGE_BYTES = 8 << 20
FORMAT = 1


class Counts(NamedTuple):
    """Steps of this trainer, of all others as of the last answer, and those not pushed yet."""

    own_steps: int = 0
    other_steps: int = 0
    uncounted_steps: int = 0


def copied_state(
    local: LocalParameters, dense: GeoDense, counts: Counts, page_bytes: int = PAGE_BYTES
) -> list[StatePage]:
    """Copies of all that a cut needs; nothing may change the parameters meanwhile."""
    states = local.update_states()
    first = {
        "kind": "counts",
        "format": FORMAT,
        "counts": counts._asdict(),
        "optimizers": local.optimizers(),
        "sizes": {name: dense.kept(name).train.size for name in dense.names},
        "dense_updates": {name: state.steps for name, state in states.items()},
        "table_updates": {name: table.updates for name, table in local.tables.items()},
        "layouts": {name: asdict(table.layout) for name, table in local.tables.items()},
    }
    pages = [StatePage(json.loads(json.dumps(first)), {})]
    for name in dense.names:
        pages += _dense_pages(name, dense.kept(name), states.get(name), page_bytes)
    for name, table in local.tables.items():
        meta = {"kind": "rows", "table": name}
        pages += [StatePage(meta, arrays) for arrays in table.kept(page_bytes)]
    return pages


def _dense_pages(
    name: str, kept: Kept, state: UpdateState | None, page_bytes: int
) -> Iterator[StatePage]:
    train, old = kept.train.reshape(-1), kept.old.reshape(-1)
    values = np.empty((0, len(train)), np.float32) if state is None else state.values
    step = max(1, page_bytes // (4 * (2 + len(values))))
    for at in range(0, len(train), step):
        here = slice(at, at + step)
        arrays = {"train": train[here], "old": old[here], "state": values[:, here]}
        meta = {"kind": "dense", "parameter": name, "at": at}
        yield StatePage(meta, {each: array.copy() for each, array in arrays.items()})


@dataclass
class RestoredState:
    """The state of trainer `me` from pages of cut `cut`; tables are filled as pages arrive."""

    local: LocalParameters
    shapes: Mapping[str, Shape]
    me: int
    cut: int
    counts: Counts = field(default_factory=Counts)
    dense: dict[str, Kept] = field(default_factory=dict)
    _states: dict[str, F32] = field(default_factory=dict)
    _updates: dict[str, int] = field(default_factory=dict)

    def take(self, trainer: int, page: StatePage) -> None:
        """Put a page of `trainer` in place: the caller's own, or one whose place nobody has.

        Raises `ConfigError` if it does not fit this job.
        """
        match page.meta["kind"], trainer == self.me:
            case "counts", is_mine:
                self._take_counts(page.meta, is_mine)
            case "dense", True:
                self._take_dense(page)
            case "dense", False:
                self._adopt_dense(page)
            case "rows", True:
                self._table(page).put_kept(page.arrays["rows"], page.arrays["touched"])
            case "rows", False:
                self._table(page).add_residuals(page.arrays["rows"])

    def finish(self) -> None:
        """Let the trainer's own updates continue, once all pages are in place."""
        states = {name: UpdateState(self._states[name], n) for name, n in self._updates.items()}
        self.local.go_on(states)

    def _take_counts(self, meta: Mapping[str, Any], is_mine: bool) -> None:
        mine = json.loads(json.dumps(self.local.optimizers()))
        for name, saved in meta["optimizers"].items():
            self._check(name, "the optimizer", saved, mine.get(name))
        for name, shape in self.shapes.items():
            size = math.prod(shape)
            self._check(name, "the number of elements", meta["sizes"].get(name), size)
        for name, table in self.local.tables.items():
            self._check(name, "the layout of rows", meta["layouts"].get(name), asdict(table.layout))
        counts = Counts(**meta["counts"])
        if not is_mine:
            uncounted = self.counts.uncounted_steps + counts.uncounted_steps
            self.counts = self.counts._replace(uncounted_steps=uncounted)
            return
        self.counts, self._updates = counts, dict(meta["dense_updates"])
        for name, table in self.local.tables.items():
            table.updates = meta["table_updates"][name]

    def _take_dense(self, page: StatePage) -> None:
        name, here = self._piece(page)
        kept = self._kept(name)
        kept.train.reshape(-1)[here] = page.arrays["train"]
        kept.old.reshape(-1)[here] = page.arrays["old"]
        state = page.arrays["state"]
        whole = self._states.setdefault(name, np.empty((len(state), kept.train.size), np.float32))
        whole[:, here] = state

    def _adopt_dense(self, page: StatePage) -> None:
        name, here = self._piece(page)
        train = self._kept(name).train.reshape(-1)
        train[here] += page.arrays["train"] - page.arrays["old"]

    def _kept(self, name: str) -> Kept:
        if name not in self.dense:
            self.dense[name] = Kept(*(np.zeros(self.shapes[name], np.float32) for _ in range(2)))
        return self.dense[name]

    def _piece(self, page: StatePage) -> tuple[str, slice]:
        at = page.meta["at"]
        return page.meta["parameter"], slice(at, at + len(page.arrays["train"]))

    def _table(self, page: StatePage) -> GeoTable:
        return self.local.tables[page.meta["table"]]

    def _check(self, name: str, what: str, saved: object, mine: object) -> None:
        if saved != mine:
            raise ConfigError(
                f"cut {self.cut} cannot be resumed by trainer {self.me}: {what} of {name!r} is "
                f"{saved} in the cut, but {mine} in this job. Nothing was trained.",
                hint="Resume with the program that made the cut.",
            )
