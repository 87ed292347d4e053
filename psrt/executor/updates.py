"""Local training: the update ops of a program, by the kernels the pservers use.

An update owns the optimizer state and the step count of one parameter; they begin at zero with the
executor. The learning rate of step t is `rate_at(schedule, t)`, as on a pserver.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.core.errors import ProgramError
from psrt.core.rates import rate_at
from psrt.core.specs import Adagrad, Adam, Optimizer, Sgd
from psrt.core.types import F32, Array
from psrt.executor.bindings import Rows
from psrt.executor.cells import Cell
from psrt.executor.compute import Step
from psrt.graph.program import Parameter
from psrt.kernels import optimizers as kernels


def compile_update(parameter: Parameter, value: Cell, gradient: Cell, rows: Rows | None) -> Step:
    """The step that applies `gradient` to `value`; `rows` are those of a sparse parameter."""
    if parameter.optimizer is None or parameter.learning_rate is None:
        raise ProgramError(f"Parameter {parameter.name} has an update op, but no optimizer.")
    if gradient.dtype != np.float32:
        raise ProgramError(f"Parameter {parameter.name} is updated in float32 only.")
    if rows is None:
        return DenseUpdate(parameter, value, gradient).run
    return RowUpdate(parameter, value, gradient, rows).run


def state_vectors(optimizer: Optimizer) -> int:
    """How many numbers of state stand beside each trained number."""
    match optimizer:
        case Sgd():
            return 0
        case Adagrad():
            return 1
        case Adam():
            return 2


def initial_state(optimizer: Optimizer) -> float:
    return optimizer.initial_accumulator if isinstance(optimizer, Adagrad) else 0.0


class DenseUpdate:
    """One dense parameter: every number moves at every step."""

    def __init__(self, parameter: Parameter, value: Cell, gradient: Cell) -> None:
        assert parameter.optimizer is not None
        self.parameter, self.optimizer = parameter, parameter.optimizer
        self.value, self.gradient = value, gradient
        size = int(np.prod(parameter.shape))
        shape = (state_vectors(self.optimizer), size)
        self.state = np.full(shape, initial_state(self.optimizer), np.float32)
        self.steps = 0

    def run(self) -> None:
        lr = rate_at(self.parameter.learning_rate, self.steps)  # type: ignore[arg-type]
        self.steps += 1
        w, g = self.value.value.reshape(-1), self.gradient.value.reshape(-1)
        match self.optimizer:
            case Sgd():
                kernels.sgd_(w, g, lr)
            case Adagrad(epsilon=epsilon):
                kernels.adagrad_(w, self.state[0], g, lr, epsilon)
            case Adam(beta1=beta1, beta2=beta2, epsilon=epsilon):
                sizes = kernels.adam_step_size(lr, beta1, beta2, epsilon, self.steps)
                kernels.adam_(w, *self.state, g, sizes[0], beta1, beta2, sizes[1])


class RowUpdate:
    """One sparse table held whole: only touched rows move, each by its own count of updates.

    `beside` holds header and state of each row; touched rows are put together with their weights
    as a slab, updated, and written back.
    """

    def __init__(self, parameter: Parameter, value: Cell, gradient: Cell, rows: Rows) -> None:
        assert parameter.optimizer is not None
        self.parameter, self.optimizer = parameter, parameter.optimizer
        self.value, self.gradient, self.rows = value, gradient, rows
        self.width = parameter.shape[1]
        self.steps = 0
        self.beside: F32 | None = None

    def run(self) -> None:
        lr = rate_at(self.parameter.learning_rate, self.steps)  # type: ignore[arg-type]
        self.steps += 1
        ids, beside = self.rows.ids, self._beside()
        if ids is None or len(ids) == 0:
            return
        head, ends = kernels.HEADER_WORDS, kernels.HEADER_WORDS + self.width
        slab = np.hstack([beside[ids, :head], self.value.value[ids], beside[ids, head:]])
        self._apply(slab, self.gradient.value, lr)
        self.value.value[ids] = slab[:, head:ends]
        beside[ids, :head], beside[ids, head:] = slab[:, :head], slab[:, ends:]

    def _beside(self) -> F32:
        if self.beside is None:
            if self.parameter.distributed:
                raise ProgramError(
                    f"Table {self.parameter.name} is distributed, so no executor can update it.",
                    hint="Push its gradients to pservers, or declare it is_distributed=False.",
                )
            words = kernels.HEADER_WORDS + state_vectors(self.optimizer) * self.width
            self.beside = np.zeros((self.parameter.shape[0], words), np.float32)
            self.beside[:, kernels.HEADER_WORDS :] = initial_state(self.optimizer)
        return self.beside

    def _apply(self, slab: F32, gradient: Array, lr: float) -> None:
        slots: Any = np.arange(len(slab), dtype=np.int32)
        at = kernels.HEADER_WORDS
        match self.optimizer:
            case Sgd():
                kernels.sgd_rows_(slab, slots, gradient, at, lr)
            case Adagrad(epsilon=epsilon):
                kernels.adagrad_rows_(slab, slots, gradient, at, lr, epsilon)
            case Adam(beta1=b1, beta2=b2, epsilon=epsilon):
                corrections = kernels.adam_corrections(b1, b2)
                kernels.adam_rows_(slab, slots, gradient, at, lr, b1, b2, epsilon, corrections)
