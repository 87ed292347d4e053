"""Parameters that a trainer of mode geo updates itself, by the formulas of pservers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from psrt.communicator.base import Gradients
from psrt.communicator.geo import GeoTable, UpdateState
from psrt.core.specs import DenseTableSpec, to_plain
from psrt.core.tensors import SelectedRows
from psrt.core.types import F32
from psrt.kernels.optimizers import rule_of
from psrt.partition.plan import build_plan
from psrt.torch.declared import DeclaredParameter

_HERE = "here:1"


class OwnDense:
    """One dense parameter: its values (n,), optimizer state (vectors, n) and count of updates."""

    def __init__(self, spec: DenseTableSpec) -> None:
        self._rule = rule_of(spec.optimizer)
        first = np.array(self._rule.first, np.float32)
        self.state: F32 = np.repeat(first, spec.size).reshape(-1, spec.size)
        self.values: F32 = np.empty(spec.size, np.float32)
        self.steps = 0

    def apply(self, gradient: F32, rate: float) -> None:
        """Make one update by `gradient`, of any shape."""
        self.steps += 1
        flat = np.ascontiguousarray(gradient).reshape(-1)
        self._rule.update_block(self.values.reshape(-1), self.state, flat, rate, self.steps)


class GeoParameters:
    """A `psrt.communicator.geo.LocalParameters`; `begin` it with the arrays to train in."""

    def __init__(self, declared: Iterable[DeclaredParameter]) -> None:
        every = tuple(declared)
        plan = build_plan(every, [_HERE], slice_var_up=False)
        self.tables = {spec.name: GeoTable(spec) for spec in plan.sparse}
        self._dense = {each.spec.parameter: OwnDense(each.spec) for each in plan.blocks}
        self._optimizers = {each.name: to_plain(each.optimizer) for each in every}

    def begin(self, dense: Mapping[str, F32]) -> None:
        """Train in these contiguous arrays from now on."""
        for name, values in dense.items():
            self._dense[name].values = values

    def apply(self, gradients: Gradients, rates: Mapping[str, float]) -> Gradients:
        """Update dense parameters; returns the gradients of tables."""
        rows = {name: each for name, each in gradients.items() if isinstance(each, SelectedRows)}
        for name, gradient in gradients.items():
            if not isinstance(gradient, SelectedRows):
                self._dense[name].apply(gradient, rates[name])
        return rows

    def dense(self, name: str) -> F32:
        return self._dense[name].values

    def all_dense(self) -> dict[str, F32]:
        """The trained arrays, not copied."""
        return {name: each.values for name, each in self._dense.items()}

    def agreed(self, other_steps: int) -> None:
        """Do nothing: learning rates come with each step."""

    def optimizers(self) -> Mapping[str, Any]:
        return self._optimizers

    def update_states(self) -> Mapping[str, UpdateState]:
        return {name: UpdateState(each.state, each.steps) for name, each in self._dense.items()}

    def go_on(self, states: Mapping[str, UpdateState]) -> None:
        for name, state in states.items():
            self._dense[name].state = state.values.copy()
            self._dense[name].steps = state.steps
