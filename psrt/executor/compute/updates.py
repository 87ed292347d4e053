"""Local training: the update ops of a program, with the optimizer rules and kernels of pservers.

An update owns the optimizer state and the step count of one parameter, both of which start with the
executor. The learning rate of step t is `rate_at(schedule, t)`, as on a pserver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from psrt.core.errors import ProgramError
from psrt.core.specs import LAYER_WISE, ComputedRate, rate_at
from psrt.core.types import I32, Array
from psrt.executor.compute.parts import part_of
from psrt.executor.compute.registry import Step
from psrt.executor.memory import BoundRows, Cell
from psrt.graph.program import Parameter
from psrt.kernels.optimizers import (
    HEADER_WORDS,
    OptimizerRule,
    RowTable,
    TouchedRows,
    rule_of,
    stamp_,
)


class Update(Protocol):
    """The update of one parameter: `run`, or `begin` and then every `part`.

    `begin` changes no weights and counts no step; the first part counts the step. Any threads may
    run the parts at the same time; only an update that `may_be_split` has more than one.
    """

    parameter: Parameter
    pace: Pace

    @property
    def may_be_split(self) -> bool: ...
    def run(self) -> None: ...
    def begin(self) -> None: ...
    def part(self, number: int, of: int) -> None: ...
    def share_state(self, other: Update) -> None: ...


def go_on(updates: Mapping[str, Update], before: Mapping[str, Update]) -> None:
    """Share state and step counts with former updates by the same optimizer, by parameter name.

    A parameter that was given another optimizer or learning rate begins anew.
    """
    for name, update in updates.items():
        if name in before and _is_alike(update.parameter, before[name].parameter):
            update.share_state(before[name])


def _is_alike(one: Parameter, other: Parameter) -> bool:
    return (one.optimizer, one.learning_rate) == (other.optimizer, other.learning_rate)


def make_update(
    parameter: Parameter,
    value: Cell,
    gradient: Cell,
    rows: BoundRows | None,
    rate: Cell | None = None,
) -> Update:
    """The update of `value` by `gradient`; `rows` are those of a sparse parameter.

    `rate` holds the learning rate if the program computes it.
    """
    if parameter.optimizer is None or parameter.learning_rate is None:
        raise ProgramError(f"Parameter {parameter.name} has an update op, but no optimizer.")
    rule = rule_of(parameter.optimizer, gradient.dtype)
    if rows is None:
        update: Update = DenseUpdate(parameter, rule, value, gradient)
    else:
        update = LocalRowUpdate(parameter, rule, value, gradient, rows)
    update.pace.computed = rate
    return update


def in_sequence(steps: Sequence[Step]) -> Step:
    """One step that runs several."""
    if len(steps) == 1:
        return steps[0]

    def run() -> None:
        for step in steps:
            step()

    return run


class Pace:
    """The number of updates of a parameter here, and its learning rate.

    `other_steps` are mini-batches of other trainers: they advance the schedule, but not the step
    count of an optimizer's bias correction. `computed` holds the rate of a `ComputedRate`.
    """

    def __init__(self, parameter: Parameter) -> None:
        assert parameter.learning_rate is not None, parameter.name
        self.schedule = parameter.learning_rate
        self.steps = self.other_steps = 0
        self.computed: Cell | None = None

    def next(self) -> tuple[float, int]:
        """The learning rate and the number of the next step."""
        if self.computed is not None and isinstance(self.schedule, ComputedRate):
            return self.schedule.scale * float(self.computed.value.item()), self.steps + 1
        return rate_at(self.schedule, self.steps + self.other_steps), self.steps + 1


class DenseUpdate:
    """One dense parameter: each step updates all weights; `state` is (state_vectors, size)."""

    def __init__(
        self, parameter: Parameter, rule: OptimizerRule, value: Cell, gradient: Cell
    ) -> None:
        self.parameter, self.rule = parameter, rule
        self.value, self.gradient = value, gradient
        self.pace = Pace(parameter)
        size = int(np.prod(parameter.shape))
        self.state: Array = np.empty((rule.state_vectors, size), gradient.dtype)
        self.state[:] = np.reshape(rule.first, (-1, 1))
        self._rate, self._step = 0.0, 0

    def share_state(self, other: Update) -> None:
        """Share state and step count with another update of the parameter."""
        assert isinstance(other, DenseUpdate)
        self.state, self.pace = other.state, other.pace

    @property
    def may_be_split(self) -> bool:
        """True if the update of an element depends on that element only."""
        return not isinstance(self.parameter.optimizer, LAYER_WISE)

    def run(self) -> None:
        self.begin()
        self.part(0, 1)

    def begin(self) -> None:
        """Look up the rate."""
        self._rate, self._step = self.pace.next()

    def part(self, number: int, of: int) -> None:
        """Update part `number` of `of` of the weights."""
        self.pace.steps += number == 0
        w, g = self.value.value.reshape(-1), self.gradient.value.reshape(-1)
        here = part_of(len(w), number, of)
        if here.start < here.stop:
            state = self.state[:, here]
            self.rule.update_block(w[here], state, g[here], self._rate, self._step)


class LocalRowUpdate:
    """One sparse table held whole: rows are updated as on a pserver, each with its own step count.

    `headers_and_state` (height, ·) exists after the first step. Parts split a step's distinct ids.
    """

    def __init__(
        self,
        parameter: Parameter,
        rule: OptimizerRule,
        value: Cell,
        gradient: Cell,
        rows: BoundRows,
    ) -> None:
        self.parameter, self.rule = parameter, rule
        self.value, self.gradient, self.rows = value, gradient, rows
        self.pace = Pace(parameter)
        self.headers_and_state: Array | None = None
        self._stamp: Any = stamp_ if gradient.dtype == np.float32 else stamp_.python
        self._order: I32 = np.empty(0, np.int32)
        self._table_rows: I32 = np.empty(0, np.int32)
        self._rate, self._step = 0.0, 0

    def share_state(self, other: Update) -> None:
        """Share state and step count with another update of the parameter."""
        assert isinstance(other, LocalRowUpdate)
        self.headers_and_state, self.pace = other._ensured_state(), other.pace

    @property
    def may_be_split(self) -> bool:
        """True if the update touches only rows of the step, which have a part."""
        return not self.rule.moves_all_rows

    def run(self) -> None:
        self.begin()
        self.part(0, 1)
        if self.rule.moves_all_rows:
            table, step, width = self._table(), self._step, self.parameter.shape[1]
            self.rule.update_rest(table, len(table.state), step, width, self._rate, step)

    def begin(self) -> None:
        """Look up the rate and the rows of the step."""
        self._rate, self._step = self.pace.next()
        self._table_rows = self.rows.table_rows
        self._ensured_state()  # allocated here, by one thread for all parts
        self._positions(len(self._table_rows))

    def part(self, number: int, of: int) -> None:
        """Update part `number` of `of` of the rows."""
        self.pace.steps += number == 0
        step, count = self._step, len(self._table_rows)
        here = part_of(count, number, of, self.parameter.shape[1])
        table_rows, table = self._table_rows[here], self._table()
        if self.rule.reads_headers:
            self._stamp(table.weights, table.state, table_rows, step)
        touched = TouchedRows(table_rows, self._positions(count)[here], self.gradient.value)
        self.rule.update_rows(table, touched, self._rate, step)

    def state(self) -> Array:
        """Header and state (height, ·) of each row."""
        return self._ensured_state()

    def _table(self) -> RowTable:
        return RowTable(self.value.value, 0, self._ensured_state(), HEADER_WORDS)

    def _ensured_state(self) -> Array:
        if self.headers_and_state is None:
            self.headers_and_state = self._fresh_state()
        return self.headers_and_state

    def _fresh_state(self) -> Array:
        if self.parameter.distributed:
            raise ProgramError(
                f"Table {self.parameter.name} is distributed, so no executor can update it.",
                hint="Push its gradients to pservers, or declare it is_distributed=False.",
            )
        height, width = self.parameter.shape
        first = self.rule.first_state(width)
        made: Array = np.zeros((height, HEADER_WORDS + len(first)), self.gradient.dtype)
        if first.any():  # else pages of unused rows stay unallocated
            made[:, HEADER_WORDS:] = first
        return made

    def _positions(self, count: int) -> I32:
        """0, 1, …: row i of the gradient belongs to entry i of the table rows."""
        if len(self._order) < count:
            self._order = np.arange(2 * count, dtype=np.int32)
        return self._order[:count]
