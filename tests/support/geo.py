"""Geo trainers without an executor: SGD at a constant rate by hand, and the published scheme.

`GeoByHand` replaces a communicator, so that suites for all modes can drive it: it takes dense
gradients too, and updates its own arrays with them as an executor would. `Simulated` trainers and
`SimulatedPserver` are the scheme in plain numpy, with one exchange at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from psrt.communicator.base import (
    BeginsAt,
    Communicator,
    Gradient,
    Gradients,
    Position,
    Pulled,
    Timeline,
)
from psrt.communicator.geo import GeoTable, UpdateState
from psrt.core import specs
from psrt.core.counters import Counters
from psrt.core.tensors import SelectedRows
from psrt.core.types import F32, I64
from psrt.kernels.tables import initialize
from psrt.partition.plan import PartitionPlan, PlacedBlock

RATE = np.float32(0.5)
START = specs.Uniform(-0.1, 0.1)
WIDTH, EMB_SEED = 3, 3
SHAPES = {"b": ((3,), 1), "w": ((4, 2), 2)}
"""Shape and seed of the dense parameters."""


def plan_of(endpoints: tuple[str, ...]) -> PartitionPlan:
    """`b` and two blocks of `w` dealt to the endpoints, and the table `emb` on all of them."""
    added = {
        "initializer": START,
        "optimizer": specs.Add(),
        "learning_rate": specs.ConstantRate(1.0),
    }
    blocks = [
        specs.DenseTableSpec("b", "b", (3,), 0, 3, seed=1, **added),
        specs.DenseTableSpec("w.block0", "w", (4, 2), 0, 4, seed=2, **added),
        specs.DenseTableSpec("w.block1", "w", (4, 2), 4, 4, seed=2, **added),
    ]
    placed = [PlacedBlock(endpoints[i % len(endpoints)], spec) for i, spec in enumerate(blocks)]
    return PartitionPlan(
        endpoints, tuple(placed), (specs.SparseTableSpec("emb", WIDTH, seed=EMB_SEED, **added),)
    )


def with_add(plan: PartitionPlan) -> PartitionPlan:
    """`plan` with tables that add up the changes of trainers."""
    added = {"optimizer": specs.Add(), "learning_rate": specs.ConstantRate(1.0)}
    blocks = (replace(block, spec=replace(block.spec, **added)) for block in plan.blocks)
    sparse = (replace(spec, **added) for spec in plan.sparse)
    return replace(plan, blocks=tuple(blocks), sparse=tuple(sparse))


def initial(parameter: str) -> F32:
    shape, seed = SHAPES[parameter]
    out = np.empty(int(np.prod(shape)), np.float32)
    initialize.fill_block(START, seed, 0, out)
    return out.reshape(shape)


def initial_row(row_id: int) -> F32:
    out = np.empty((1, WIDTH), np.float32)
    initialize.fill_rows(START, EMB_SEED, np.array([row_id], np.int64), out)
    return out[0]


TABLE = specs.SparseTableSpec(
    "emb", WIDTH, START, specs.Sgd(), specs.ConstantRate(float(RATE)), EMB_SEED
)


class OwnByHand:
    """Dense arrays and a table, trained by SGD at the constant rate of the table."""

    def __init__(self, table: specs.SparseTableSpec = TABLE) -> None:
        assert isinstance(table.learning_rate, specs.ConstantRate)
        self.rate = np.float32(table.learning_rate.rate)
        self.tables = {table.name: GeoTable(table)}
        self.arrays: dict[str, F32] = {}
        self.other_steps: list[int] = []
        self.states: dict[str, UpdateState] = {}

    def dense(self, name: str) -> F32:
        return self.arrays[name]

    def agreed(self, other_steps: int) -> None:
        self.other_steps.append(other_steps)

    def optimizers(self) -> Mapping[str, Any]:
        return {}

    def update_states(self) -> Mapping[str, UpdateState]:
        return self.states

    def go_on(self, states: Mapping[str, UpdateState]) -> None:
        self.states = dict(states)


class GeoByHand:
    """A Geo communicator and the updates an executor would make."""

    def __init__(self, communicator: Communicator, own: OwnByHand) -> None:
        self.inner, self.own = communicator, own

    @property
    def counters(self) -> Counters:
        return self.inner.counters

    def watch(self, timeline: Timeline | None) -> None:
        self.inner.watch(timeline)

    def start(self, timeout_s: float) -> dict[str, F32]:
        self.own.arrays = self.inner.start(timeout_s)
        return self.current()

    def pull_rows(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        return self.inner.pull_rows(wanted)

    def begin(self, wanted: Mapping[str, I64]) -> None:
        self.inner.begin(wanted)

    def declare_trained(self) -> None:
        self.inner.declare_trained()

    def offer(self, name: str, gradient: Gradient) -> None:
        self.inner.offer(name, gradient)

    def begins_at(self, begin: BeginsAt) -> None:
        self.inner.begins_at(begin)

    def marks(self, reached: str) -> None:
        self.inner.marks(reached)

    def continues_at(self, position: Position) -> None:
        self.inner.continues_at(position)

    def finish(self, gradients: Gradients) -> Pulled:
        sparse = {n: g for n, g in gradients.items() if isinstance(g, SelectedRows)}
        for name, gradient in gradients.items():
            if not isinstance(gradient, SelectedRows):
                self.own.arrays[name] -= self.own.rate * gradient
        return Pulled(self.current(), self.inner.finish(sparse).rows)

    def flush(self, timeout_s: float, final: bool = False) -> dict[str, F32]:
        self.inner.flush(timeout_s, final)
        return self.current()

    def stop(self, timeout_s: float, interrupted: bool = False) -> dict[str, F32]:
        return self.inner.stop(timeout_s, interrupted)

    def close(self) -> None:
        self.inner.close()

    def current(self) -> dict[str, F32]:
        """Copies: the arrays themselves change in place."""
        return {name: values.copy() for name, values in self.own.arrays.items()}


Key = str | int
"""The name of a dense parameter, or an id of the table."""


def start_of(key: Key) -> F32:
    return initial(key) if isinstance(key, str) else initial_row(key)


class SimulatedPserver:
    """p, and for each trainer the ids that others have changed since it last pulled."""

    def __init__(self, trainers: int) -> None:
        self.p: dict[Key, F32] = {name: initial(name) for name in SHAPES}
        self.changed: list[set[int]] = [set() for _ in range(trainers)]

    def push(self, trainer: int, deltas: Mapping[Key, F32]) -> None:
        for key, delta in deltas.items():
            self.p[key] = self.p.get(key, start_of(key)) + delta
            for other, ids in enumerate(self.changed):
                if isinstance(key, int) and other != trainer:
                    ids.add(key)

    def pull(self, trainer: int) -> dict[Key, F32]:
        ids, self.changed[trainer] = self.changed[trainer], set()
        return {key: self.p[key].copy() for key in [*SHAPES, *ids]}


class Simulated:
    """One trainer; `exchange` and `merge` are the two halves, between which it may train on."""

    def __init__(self, number: int, trainers: int, pserver: SimulatedPserver) -> None:
        self._number, self._trainers, self._pserver = number, np.float32(trainers), pserver
        self.train: dict[Key, F32] = {name: initial(name) for name in SHAPES}
        self.old = {name: values.copy() for name, values in self.train.items()}
        self._touched: set[int] = set()
        self._pulled: dict[Key, F32] | None = None

    def step(self, gradients: Gradients) -> None:
        for name, gradient in gradients.items():
            if isinstance(gradient, SelectedRows):
                for row_id, row in zip(gradient.ids.tolist(), gradient.values, strict=True):
                    self._row(row_id)
                    self.train[row_id] = self.train[row_id] - RATE * row
                    self._touched.add(row_id)
            else:
                self.train[name] = self.train[name] - RATE * gradient

    def exchange(self, whole: bool = False) -> None:
        keys = list(self.train) if whole else [*SHAPES, *self._touched]
        divisor = np.float32(1) if whole else self._trainers
        deltas = {key: (self.train[key] - self.old[key]) / divisor for key in keys}
        for key, delta in deltas.items():
            self.old[key] = self.old[key] + delta
        self._touched.clear()
        self._pserver.push(self._number, {k: d for k, d in deltas.items() if d.any()})
        self._pulled = self._pserver.pull(self._number)

    def merge(self) -> None:
        pulled, self._pulled = self._pulled or {}, None
        for key, p in pulled.items():
            self._row(key)
            train, old = self.train[key], self.old[key]
            self.train[key] = np.where(train == old, p, train + (p - old))
            self.old[key] = p

    def _row(self, key: Key) -> None:
        if key not in self.train:
            self.train[key] = start_of(key)
            self.old[key] = start_of(key)


def rows_of(read: Callable[[Mapping[str, I64]], dict[str, F32]], ids: list[int]) -> dict[int, F32]:
    rows = read({"emb": np.array(ids, np.int64)})["emb"]
    return dict(zip(ids, rows, strict=True))
