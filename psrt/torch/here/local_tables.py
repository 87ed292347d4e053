"""Tables and dense parameters in this process, by the code of a pserver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from psrt.communicator.base import ComingRows, Gradients, Position, no_position
from psrt.core.specs import CommunicationMode, Sync
from psrt.core.tensors import SelectedRows
from psrt.core.types import F32, I64
from psrt.kernels import jit
from psrt.kernels.tables import rows as row_kernels
from psrt.partition.plan import PartitionPlan, build_plan
from psrt.pserver.tables import RoutedIds, TableRegistry
from psrt.torch.cuts import LocalTableCuts, RunPosition
from psrt.torch.declared import Declared, Dense, Rates
from psrt.torch.first_rows import PAGE_ROWS, fill_from, fill_with

_HERE = "here:1"


class LocalTables:
    """Tables in this process, by the code of a pserver; `cuts` are made and resumed there."""

    mode: CommunicationMode = Sync()
    trainers, trainer_id, replaces = 1, 0, False

    def __init__(self, cuts: LocalTableCuts, warm_start: str = "") -> None:
        self._warm_start = warm_start
        self._weights: dict[str, F32] = {}
        jit.warm_up(("trainer", "pserver"))
        self._tables = TableRegistry(stripes=1)
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._routed: dict[str, tuple[I64, RoutedIds]] = {}
        self._expected: Mapping[str, I64] = {}
        self.brought: Mapping[str, F32] = {}
        self._cuts, self._position = cuts, RunPosition()
        self._plan: PartitionPlan | None = None
        self._at: Position = no_position

    def open(self, declared: Declared, first: Dense) -> Dense:
        plan = self._plan = build_plan(declared, [_HERE], slice_var_up=False)
        self._tables.register(plan.specs_for(_HERE))
        self._shapes = plan.dense_shapes
        if self._warm_start:
            fill_from(self._tables, declared, self._warm_start)
        if self._weights:
            fill_with(self._tables, declared, self._weights)
            self._weights = {}
        for name, values in first.items():
            self._tables.dense(name).begin_with(values.reshape(-1))
        self._at = self._position.begin(self._cuts.restore(self._tables))
        self._position.belong_to(self._position.resumed_run or self.run)
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

    def read_behind(self, wanted: Mapping[str, I64]) -> ComingRows | None:
        return None

    def push(self, gradients: Gradients, rates: Rates, sums: bool = False) -> Dense:
        for name, gradient in gradients.items():
            if isinstance(gradient, SelectedRows):
                merged = row_kernels.merge(gradient)
                routed = self._route(name, merged.ids)
                self._tables.sparse(name).apply(routed, merged.values, rates[name])
            else:
                self._tables.dense(name).apply(gradient.reshape(-1), rates[name])
        self.brought = self.pull(self._expected)
        if self._cuts.are_made:
            self._at = self._position.after_step()
        return self._dense() if gradients else {}

    @property
    def resumed_cut(self) -> int:
        return self._position.found.cut

    @property
    def run(self) -> str:
        return self._position.run

    def flush(self) -> Dense:
        return self._dense()

    def tell(self, name: str, note: str, timeout_s: float) -> list[str]:
        return [note]

    def make_cut(self, timeout_s: float) -> int:
        assert self._plan is not None, "a cut is made once tables are open"
        return self._cuts.make(self._tables, self._plan, self._at(), timeout_s)

    def complete(self) -> Dense:
        return self._dense()

    def close(self) -> None:
        """Nothing is connected."""

    def _route(self, name: str, ids: I64) -> RoutedIds:
        """The routed ids of the last pull if it had the same: their rows are found already."""
        pulled = self._routed.get(name)
        if pulled is not None and pulled[0] is ids:
            return pulled[1]
        return self._tables.sparse(name).route(ids)

    def _dense(self) -> Dense:
        read = {name: self._tables.dense(name).read()[0] for name in self._shapes}
        return {name: values.reshape(self._shapes[name]) for name, values in read.items()}
