"""The places of tables: this process (`LocalTables`), or pservers (`ConnectedTables`).

Both compute the same: a backend pulls rows of distinct ids, and makes one update by the gradients
of a step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol

import numpy as np

from psrt.communicator.base import Gradients
from psrt.core.errors import ConfigError
from psrt.core.specs import CommunicationMode, Sync
from psrt.core.tensors import SelectedRows
from psrt.core.types import F32, I64
from psrt.graph.program import Program
from psrt.kernels import jit
from psrt.kernels.tables import rows as row_kernels
from psrt.partition.plan import build_plan
from psrt.partition.transpiler import TrainerProgram
from psrt.pserver.tables import RoutedIds, TableRegistry
from psrt.torch.declared import DeclaredParameter
from psrt.torch.first_rows import PAGE_ROWS, fill_from, fill_with
from psrt.trainer.training import ConnectedCluster

Rates = Mapping[str, float]
Declared = Iterable[DeclaredParameter]

_HERE = "here:1"


class Backend(Protocol):
    """Tables and dense parameters by name; belongs to the training thread."""

    mode: CommunicationMode
    trainers: int

    def open(self, declared: Declared) -> Mapping[str, F32]:
        """Register what is declared; returns the dense parameters."""
        ...

    def pull(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        """Rows (n, width) of the distinct ids (n,) of each table; changes nothing."""
        ...

    def begin_with(self, weights: Mapping[str, F32]) -> None:
        """Let tables begin with weights (n, width) for the ids 0 … n − 1; called before `open`."""
        ...

    def rows(self, table: str) -> Iterator[tuple[I64, F32]]:
        """Pages of ids (n,) and rows (n, width): all rows that exist, with all own pushes."""
        ...

    @property
    def brought(self) -> Mapping[str, F32]:
        """Rows that came with the last push."""
        ...

    def expect(self, wanted: Mapping[str, I64]) -> None:
        """Read rows of the distinct ids (n,) of each table right behind the next push."""
        ...

    def push(self, gradients: Gradients, rates: Rates) -> Mapping[str, F32]:
        """Make one update with the learning rate of each table; returns newer dense parameters.

        An empty mapping closes a round of Sync without a share in it.
        """
        ...

    def complete(self) -> None:
        """Apply what is queued, and report that this trainer is done."""
        ...

    def close(self) -> None:
        """Drop connections, whatever their state."""
        ...


class LocalTables:
    """Tables in this process, by the code of a pserver."""

    mode: CommunicationMode = Sync()
    trainers = 1

    def __init__(self, warm_start: str = "") -> None:
        self._warm_start = warm_start
        self._weights: dict[str, F32] = {}
        jit.warm_up(("trainer", "pserver"))
        self._tables = TableRegistry(stripes=1)
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._routed: dict[str, tuple[I64, RoutedIds]] = {}
        self._expected: Mapping[str, I64] = {}
        self.brought: Mapping[str, F32] = {}

    def open(self, declared: Declared) -> Mapping[str, F32]:
        plan = build_plan(declared, [_HERE], slice_var_up=False)
        self._tables.register(plan.specs_for(_HERE))
        self._shapes = plan.dense_shapes
        if self._warm_start:
            fill_from(self._tables, declared, self._warm_start)
        if self._weights:
            fill_with(self._tables, declared, self._weights)
            self._weights = {}
        return self._dense()

    def pull(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        found = {}
        for name, ids in wanted.items():
            table = self._tables.sparse(name)
            routed = table.route(ids)
            self._routed[name] = ids, routed
            out = np.empty((len(ids), table.spec.width), np.float32)
            table.read(routed, out)
            found[name] = out
        return found

    def begin_with(self, weights: Mapping[str, F32]) -> None:
        self._weights.update(weights)

    def rows(self, table: str) -> Iterator[tuple[I64, F32]]:
        found, cursor, at_end = self._tables.sparse(table), 0, False
        while not at_end:
            ids, rows, cursor = found.export(cursor, PAGE_ROWS)
            yield ids, rows
            at_end = cursor == 0

    def expect(self, wanted: Mapping[str, I64]) -> None:
        self._expected = wanted

    def push(self, gradients: Gradients, rates: Rates) -> Mapping[str, F32]:
        for name, gradient in gradients.items():
            if isinstance(gradient, SelectedRows):
                merged = row_kernels.merge(gradient)
                routed = self._route(name, merged.ids)
                self._tables.sparse(name).apply(routed, merged.values, rates[name])
            else:
                self._tables.dense(name).apply(gradient.reshape(-1), rates[name])
        self.brought = self.pull(self._expected)
        return self._dense() if gradients else {}

    def complete(self) -> None:
        """Nothing is queued."""

    def close(self) -> None:
        """Nothing is connected."""

    def _route(self, name: str, ids: I64) -> RoutedIds:
        """The routed ids of the last pull if it had the same: their rows are found already."""
        pulled = self._routed.get(name)
        if pulled is not None and pulled[0] is ids:
            return pulled[1]
        return self._tables.sparse(name).route(ids)

    def _dense(self) -> dict[str, F32]:
        read = {name: self._tables.dense(name).read()[0] for name in self._shapes}
        return {name: values.reshape(self._shapes[name]) for name, values in read.items()}


class ConnectedTables:
    """Tables on the pservers at `endpoints`, for trainer `trainer_id` of `trainers`."""

    def __init__(
        self,
        endpoints: tuple[str, ...],
        mode: CommunicationMode,
        trainer_id: int,
        trainers: int,
        job_id: str,
        timeout_s: float,
        warm_start: str = "",
    ) -> None:
        self._warm_start = warm_start
        self._endpoints, self.mode, self.trainers = endpoints, mode, trainers
        self._trainer_id, self._job_id, self._timeout_s = trainer_id, job_id, timeout_s
        self._cluster: ConnectedCluster | None = None
        self.brought: Mapping[str, F32] = {}

    def open(self, declared: Declared) -> Mapping[str, F32]:
        jit.warm_up(("trainer",))
        plan = build_plan(declared, self._endpoints, mode=self.mode)
        plan = replace(plan, warm_start=self._warm_start)
        numbers = self._trainer_id, self.trainers
        part = TrainerProgram(Program(), plan, self.mode, *numbers, self._job_id)
        self._cluster = ConnectedCluster(part, call_timeout_s=self._timeout_s, say=print)
        return self._cluster.communicator.start(self._timeout_s)

    def pull(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        return self._opened.communicator.pull_rows(wanted)

    def begin_with(self, weights: Mapping[str, F32]) -> None:
        if not self._warm_start:
            raise ConfigError(
                f"weights of {', '.join(weights)} are in this process, and tables on pservers; "
                "nothing was sent.",
                hint="Write them to a directory that pservers can read, by pt.save_tables, and "
                "begin with it: pt.connect(warm_start=DIR).",
            )

    def rows(self, table: str) -> Iterator[tuple[I64, F32]]:
        self._opened.communicator.flush(self._timeout_s)
        return self._opened.rows(table)

    def expect(self, wanted: Mapping[str, I64]) -> None:
        if wanted:
            self._opened.communicator.begin(wanted)

    def push(self, gradients: Gradients, rates: Rates) -> Mapping[str, F32]:
        communicator = self._opened.communicator
        communicator.use_rates(rates)
        pulled = communicator.finish(gradients)
        self.brought = pulled.rows
        return pulled.dense

    def complete(self) -> None:
        self._opened.communicator.stop(self._timeout_s)

    def close(self) -> None:
        if self._cluster is not None:
            self._cluster.close()

    @property
    def _opened(self) -> ConnectedCluster:
        assert self._cluster is not None, "tables are used before they are opened"
        return self._cluster
