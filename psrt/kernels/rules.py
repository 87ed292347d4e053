"""Optimizer spec → what state a weight needs, and which kernels move it.

A rule is the same for pservers and for local training. It is stateless and shared; whoever calls it
holds weights and state and their lock. Making a rule loads its kernels, so that the first update
need not wait for a compiler: a process compiles only the optimizers it has tables for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from psrt.core import specs
from psrt.core.types import I32, Array
from psrt.kernels import adam_rows, ctr_optimizers, optimizer_rows, optimizers
from psrt.kernels.dense import LANES
from psrt.kernels.jit import Kernel
from psrt.kernels.optimizers import adam_corrections, adam_step_size

Numbers: TypeAlias = Callable[[float, int], tuple[Any, ...]]
"""(rate, t) → the arguments of a kernel behind weights, state and gradient; t = 1, 2, …"""


class RowTable(NamedTuple):
    """Rows with their weights from column `at` on in one array, and their state in another.

    Rows of `state` begin with the header; on a pserver the two are one slab.
    """

    weights: Array
    at: int
    state: Array
    state_at: int


class TouchedRows(NamedTuple):
    """`gradients[order[k]]` (d,) is for row `slots[k]`, whose header is written already."""

    slots: I32
    order: I32
    gradients: Array


@dataclass(frozen=True)
class Rule:
    """`first` holds the first value of each state vector; their number is the size of the state.

    With `shares_state` all weights of a row share one number of each. `rest` is set if an update
    moves all rows of a table; it takes the numbers of `block`. Without `reads_headers` nobody but
    a pserver needs the headers of rows to be written.
    """

    first: tuple[float, ...]
    block: Callable[..., Any]
    rows: Callable[..., Any]
    block_numbers: Numbers
    row_numbers: Numbers
    rest: Callable[..., Any] | None = None
    reads_headers: bool = True
    shares_state: bool = False

    @property
    def state_vectors(self) -> int:
        """Numbers of state per weight of a block."""
        return len(self.first)

    def first_state(self, width: int) -> Array:
        """The state (words,) float32 that a row of `width` weights begins with."""
        return np.repeat(np.array(self.first, np.float32), 1 if self.shares_state else width)

    @property
    def moves_all_rows(self) -> bool:
        return self.rest is not None

    def update_block(self, w: Array, state: Array, g: Array, rate: float, t: int) -> None:
        """Update `w` (n,) and `state` (state_vectors, n) by gradient `g` (n,) for the t-th time."""
        self.block(w, *state, g, *self.block_numbers(rate, t))

    def update_rows(self, table: RowTable, touched: TouchedRows, rate: float, t: int) -> None:
        """Update the touched rows; t counts the updates of the table."""
        self.rows(*table, *touched, *self.row_numbers(rate, t))

    def update_rest(
        self, table: RowTable, size: int, version: int, width: int, rate: float, t: int
    ) -> None:
        """Move those of the first `size` rows whose header does not bear `version`."""
        assert self.rest is not None
        zeros = np.zeros(width, table.weights.dtype)
        self.rest(*table, size, version, zeros, *self.block_numbers(rate, t))


def rule_of(optimizer: specs.Optimizer, dtype: Any = np.float32) -> Rule:
    """The rule for tables of `dtype`; float64, for which no kernel is compiled, interprets them."""
    rule = _RULES[type(optimizer)](optimizer, dtype)
    forms = {name: getattr(rule, name) for name in ("block", "rows", "rest")}
    kernels = {name: form for name, form in forms.items() if isinstance(form, Kernel)}
    if dtype != np.float32:
        python = {name: kernel.python for name, kernel in kernels.items()}
        return dataclasses.replace(rule, **python)  # type: ignore[arg-type]
    for kernel in kernels.values():
        kernel.load()
    return rule


def _plain(first: tuple[float, ...], block: Kernel, rows: Kernel, *numbers: float) -> Rule:
    """A rule whose kernels take the rate and constant numbers."""

    def arguments(rate: float, t: int) -> tuple[float, ...]:
        return (rate, *numbers)

    return Rule(first, block, rows, arguments, arguments, reads_headers=False)


def _sgd(spec: specs.Sgd, dtype: Any) -> Rule:
    return _plain((), optimizers.sgd_, optimizer_rows.sgd_rows_)


def _add(spec: specs.Add, dtype: Any) -> Rule:
    def arguments(rate: float, t: int) -> tuple[float, ...]:
        return (-1.0,)  # w −= (−1) · g is w + g to the last bit

    sgd = _sgd(specs.Sgd(), dtype)
    return dataclasses.replace(sgd, block_numbers=arguments, row_numbers=arguments)


def _momentum(spec: specs.Momentum, dtype: Any) -> Rule:
    block, rows = optimizers.momentum_, optimizer_rows.momentum_rows_
    return _plain((0.0,), block, rows, spec.momentum, spec.nesterov)


def _adagrad(spec: specs.Adagrad, dtype: Any) -> Rule:
    block, rows = optimizers.adagrad_, optimizer_rows.adagrad_rows_
    return _plain((spec.initial_accumulator,), block, rows, spec.epsilon)


def _decayed_adagrad(spec: specs.DecayedAdagrad, dtype: Any) -> Rule:
    block, rows = optimizers.decayed_adagrad_, optimizer_rows.decayed_adagrad_rows_
    return _plain((0.0,), block, rows, spec.decay, spec.epsilon)


def _adadelta(spec: specs.Adadelta, dtype: Any) -> Rule:
    block, rows = optimizers.adadelta_, optimizer_rows.adadelta_rows_
    return _plain((0.0, 0.0), block, rows, spec.rho, spec.epsilon)


def _rms_prop(spec: specs.RmsProp, dtype: Any) -> Rule:
    numbers = (spec.rho, spec.epsilon, spec.momentum)
    if spec.centered:
        block, rows = optimizers.centered_rms_prop_, optimizer_rows.centered_rms_prop_rows_
        return _plain((0.0, 0.0, 0.0), block, rows, *numbers)
    return _plain((0.0, 0.0), optimizers.rms_prop_, optimizer_rows.rms_prop_rows_, *numbers)


def _ftrl(spec: specs.Ftrl, dtype: Any) -> Rule:
    first = (spec.initial_accumulator, 0.0)
    numbers = (spec.l1, spec.l2, -spec.lr_power)
    return _plain(first, optimizers.ftrl_, optimizer_rows.ftrl_rows_, *numbers)


def _adam(spec: specs.Adam, dtype: Any) -> Rule:
    beta1, beta2, eps = spec.beta1, spec.beta2, spec.epsilon
    corrections = _Corrections(beta1, beta2, spec.lazy, dtype)

    def block_numbers(rate: float, t: int) -> tuple[float, ...]:
        step_size, eps_hat = adam_step_size(rate, beta1, beta2, eps, t)
        return step_size, beta1, beta2, eps_hat

    def row_numbers(rate: float, t: int) -> tuple[Any, ...]:
        return corrections.of_table(t), rate, beta1, beta2, eps

    rest = None if spec.lazy else adam_rows.adam_rest_
    block, rows = optimizers.adam_, adam_rows.adam_rows_
    return Rule((0.0, 0.0), block, rows, block_numbers, row_numbers, rest)


def _adamw(spec: specs.AdamW, dtype: Any) -> Rule:
    adam = _adam(specs.Adam(spec.beta1, spec.beta2, spec.epsilon, spec.lazy), dtype)

    def block_numbers(rate: float, t: int) -> tuple[float, ...]:
        return *adam.block_numbers(rate, t), rate * spec.weight_decay

    def row_numbers(rate: float, t: int) -> tuple[Any, ...]:
        return *adam.row_numbers(rate, t), rate * spec.weight_decay

    rest = None if spec.lazy else adam_rows.adamw_rest_
    block, rows = optimizers.adamw_, adam_rows.adamw_rows_
    return Rule(adam.first, block, rows, block_numbers, row_numbers, rest)


def _adamax(spec: specs.Adamax, dtype: Any) -> Rule:
    beta1, numbers = spec.beta1, (spec.beta1, spec.beta2, spec.epsilon)
    corrections = adam_corrections(beta1, 0.0, dtype)

    def block_numbers(rate: float, t: int) -> tuple[float, ...]:
        return rate / (1.0 - beta1**t), *numbers

    def row_numbers(rate: float, t: int) -> tuple[Any, ...]:
        return corrections, rate, *numbers

    block, rows = optimizers.adamax_, adam_rows.adamax_rows_
    return Rule((0.0, 0.0), block, rows, block_numbers, row_numbers)


def _lars(spec: specs.LarsMomentum, dtype: Any) -> Rule:
    numbers = (spec.momentum, spec.lars_coeff, spec.lars_weight_decay, spec.epsilon)

    def arguments(rate: float, t: int) -> tuple[Any, ...]:
        return np.empty(LANES), rate, *numbers

    return Rule((0.0,), optimizers.lars_, optimizer_rows.lars_rows_, arguments, arguments)


def _lamb(spec: specs.Lamb, dtype: Any) -> Rule:
    beta1, beta2, eps, decay = spec.beta1, spec.beta2, spec.epsilon, spec.lamb_weight_decay
    corrections = adam_corrections(beta1, beta2, dtype)

    def block_numbers(rate: float, t: int) -> tuple[Any, ...]:
        scale, eps_hat = adam_step_size(1.0, beta1, beta2, eps, t)
        return np.empty(2 * LANES), rate, scale, eps_hat, beta1, beta2, decay

    def row_numbers(rate: float, t: int) -> tuple[Any, ...]:
        return np.empty(2 * LANES), corrections, rate, beta1, beta2, eps, decay

    block, rows = optimizers.lamb_, adam_rows.lamb_rows_
    return Rule((0.0, 0.0), block, rows, block_numbers, row_numbers)


def _ctr_sgd(spec: specs.CtrSgd, dtype: Any) -> Rule:
    bounds = (spec.weight_min, spec.weight_max)
    return _plain((), ctr_optimizers.ctr_sgd_, ctr_optimizers.ctr_sgd_rows_, *bounds)


def _ctr_adagrad(spec: specs.CtrAdagrad, dtype: Any) -> Rule:
    numbers = (spec.initial_g2sum, spec.weight_min, spec.weight_max)

    def arguments(rate: float, t: int) -> tuple[Any, ...]:
        return np.empty(LANES), rate, *numbers

    block, rows = ctr_optimizers.ctr_adagrad_, ctr_optimizers.ctr_adagrad_rows_
    return Rule((0.0,), block, rows, arguments, arguments, shares_state=True)


def _ctr_std_adagrad(spec: specs.CtrStdAdagrad, dtype: Any) -> Rule:
    numbers = (spec.initial_g2sum, spec.weight_min, spec.weight_max)
    block, rows = ctr_optimizers.ctr_std_adagrad_, ctr_optimizers.ctr_std_adagrad_rows_
    return _plain((0.0,), block, rows, *numbers)


def _ctr_adam(spec: specs.CtrAdam | specs.CtrSharedAdam, dtype: Any) -> Rule:
    beta1, beta2 = spec.beta1, spec.beta2
    numbers = (beta1, beta2, spec.epsilon, spec.weight_min, spec.weight_max)
    corrections = adam_corrections(beta1, beta2, dtype)

    def block_numbers(rate: float, t: int) -> tuple[Any, ...]:
        return adam_step_size(rate, beta1, beta2, 0.0, t)[0], *numbers

    def row_numbers(rate: float, t: int) -> tuple[Any, ...]:
        return corrections, rate, *numbers

    block, rows = ctr_optimizers.ctr_adam_, ctr_optimizers.ctr_adam_rows_
    return Rule((0.0, 0.0), block, rows, block_numbers, row_numbers)


def _ctr_shared_adam(spec: specs.CtrSharedAdam, dtype: Any) -> Rule:
    own = _ctr_adam(spec, dtype)

    def block_numbers(rate: float, t: int) -> tuple[Any, ...]:
        return np.empty(LANES), *own.block_numbers(rate, t)

    def row_numbers(rate: float, t: int) -> tuple[Any, ...]:
        return np.empty(LANES), *own.row_numbers(rate, t)

    block, rows = ctr_optimizers.ctr_shared_adam_, ctr_optimizers.ctr_shared_adam_rows_
    return Rule(own.first, block, rows, block_numbers, row_numbers, shares_state=True)


class _Corrections:
    """The bias corrections of a table's rows: by each row's own count, or one for all rows."""

    def __init__(self, beta1: float, beta2: float, lazy: bool, dtype: Any) -> None:
        self._all = adam_corrections(beta1, beta2, dtype)
        self._lazy = lazy

    def of_table(self, t: int) -> Array:
        if self._lazy:
            return self._all
        line = min(t, len(self._all)) - 1
        return self._all[line : line + 1]


_RULES: dict[type, Callable[[Any, Any], Rule]] = {
    specs.Sgd: _sgd,
    specs.Momentum: _momentum,
    specs.Adagrad: _adagrad,
    specs.DecayedAdagrad: _decayed_adagrad,
    specs.Adadelta: _adadelta,
    specs.RmsProp: _rms_prop,
    specs.Adam: _adam,
    specs.AdamW: _adamw,
    specs.Adamax: _adamax,
    specs.Ftrl: _ftrl,
    specs.LarsMomentum: _lars,
    specs.Lamb: _lamb,
    specs.Add: _add,
    specs.CtrSgd: _ctr_sgd,
    specs.CtrAdagrad: _ctr_adagrad,
    specs.CtrStdAdagrad: _ctr_std_adagrad,
    specs.CtrAdam: _ctr_adam,
    specs.CtrSharedAdam: _ctr_shared_adam,
}
