"""The rule of each optimizer spec: the state it needs, its kernels and their numbers.

Making a rule loads its kernels, so that the first update need not wait for a compiler: a process
compiles only the optimizers it has tables for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from psrt.core import specs
from psrt.kernels.jit import Kernel
from psrt.kernels.optimizers import update_kernels
from psrt.kernels.optimizers.bias_correction import RowCorrections, adam_corrections, adam_step_size
from psrt.kernels.optimizers.elementwise import LANES
from psrt.kernels.optimizers.optimizer_rule import OptimizerRule
from psrt.kernels.optimizers.update_kernels import UpdateKernels

__all__ = ["rule_of"]


def rule_of(optimizer: specs.Optimizer, dtype: Any = np.float32) -> OptimizerRule:
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


# --- kernels that take constant numbers ---


def _constant_rule(
    first: tuple[float, ...], kernels: UpdateKernels, *numbers: float
) -> OptimizerRule:
    """A rule whose kernels take the rate and constant `numbers`."""

    def arguments(rate: float, t: int) -> tuple[float, ...]:
        return (rate, *numbers)

    return OptimizerRule(
        first, kernels.block, kernels.rows, arguments, arguments, reads_headers=False
    )


def _scratch_rule(
    kernels: UpdateKernels, *numbers: float, shares_state: bool, first: float = 0.0
) -> OptimizerRule:
    """A rule with one state vector whose kernels take scratch, the rate and constant `numbers`."""

    def arguments(rate: float, t: int) -> tuple[Any, ...]:
        return np.empty(LANES), rate, *numbers

    block, rows = kernels.block, kernels.rows
    return OptimizerRule((first,), block, rows, arguments, arguments, shares_state=shares_state)


def _sgd(spec: specs.Sgd, dtype: Any) -> OptimizerRule:
    return _constant_rule((), update_kernels.sgd)


def _add(spec: specs.Add, dtype: Any) -> OptimizerRule:
    def arguments(rate: float, t: int) -> tuple[float, ...]:
        return (-1.0,)  # w −= (−1) · g is w + g to the last bit

    sgd = _sgd(specs.Sgd(), dtype)
    return dataclasses.replace(sgd, block_numbers=arguments, row_numbers=arguments)


def _momentum(spec: specs.Momentum, dtype: Any) -> OptimizerRule:
    return _constant_rule((0.0,), update_kernels.momentum, spec.momentum, spec.nesterov)


def _adagrad(spec: specs.Adagrad, dtype: Any) -> OptimizerRule:
    return _constant_rule((spec.initial_accumulator,), update_kernels.adagrad, spec.epsilon)


def _row_wise_adagrad(spec: specs.RowWiseAdagrad, dtype: Any) -> OptimizerRule:
    kernels, first = update_kernels.row_wise_adagrad, spec.initial_accumulator
    return _scratch_rule(kernels, spec.epsilon, shares_state=True, first=first)


def _decayed_adagrad(spec: specs.DecayedAdagrad, dtype: Any) -> OptimizerRule:
    return _constant_rule((0.0,), update_kernels.decayed_adagrad, spec.decay, spec.epsilon)


def _adadelta(spec: specs.Adadelta, dtype: Any) -> OptimizerRule:
    return _constant_rule((0.0, 0.0), update_kernels.adadelta, spec.rho, spec.epsilon)


def _rms_prop(spec: specs.RmsProp, dtype: Any) -> OptimizerRule:
    numbers = (spec.rho, spec.epsilon, spec.momentum)
    if spec.centered:
        return _constant_rule((0.0, 0.0, 0.0), update_kernels.centered_rms_prop, *numbers)
    return _constant_rule((0.0, 0.0), update_kernels.rms_prop, *numbers)


def _ftrl(spec: specs.Ftrl, dtype: Any) -> OptimizerRule:
    first = (spec.initial_accumulator, 0.0)
    return _constant_rule(first, update_kernels.ftrl, spec.l1, spec.l2, -spec.lr_power)


def _lars(spec: specs.LarsMomentum, dtype: Any) -> OptimizerRule:
    numbers = (spec.momentum, spec.lars_coeff, spec.lars_weight_decay, spec.epsilon)
    return _scratch_rule(update_kernels.lars, *numbers, shares_state=False)


def _ctr_sgd(spec: specs.CtrSgd, dtype: Any) -> OptimizerRule:
    return _constant_rule((), update_kernels.ctr_sgd, spec.weight_min, spec.weight_max)


def _ctr_adagrad(spec: specs.CtrAdagrad, dtype: Any) -> OptimizerRule:
    numbers = (spec.initial_g2sum, spec.weight_min, spec.weight_max)
    return _scratch_rule(update_kernels.ctr_adagrad, *numbers, shares_state=True)


def _ctr_std_adagrad(spec: specs.CtrStdAdagrad, dtype: Any) -> OptimizerRule:
    numbers = (spec.initial_g2sum, spec.weight_min, spec.weight_max)
    return _constant_rule((0.0,), update_kernels.ctr_std_adagrad, *numbers)


# --- kernels that take numbers of the step: Adam and its variants ---


def _adam(spec: specs.Adam, dtype: Any) -> OptimizerRule:
    beta1, beta2, eps = spec.beta1, spec.beta2, spec.epsilon
    corrections = RowCorrections(beta1, beta2, spec.lazy, dtype)

    def block_numbers(rate: float, t: int) -> tuple[float, ...]:
        step_size, eps_hat = adam_step_size(rate, beta1, beta2, eps, t)
        return step_size, beta1, beta2, eps_hat

    def row_numbers(rate: float, t: int) -> tuple[Any, ...]:
        return corrections.at_update(t), rate, beta1, beta2, eps

    block, rows, rest = update_kernels.adam
    return OptimizerRule(
        (0.0, 0.0), block, rows, block_numbers, row_numbers, None if spec.lazy else rest
    )


def _adamw(spec: specs.AdamW, dtype: Any) -> OptimizerRule:
    plain = _adam(specs.Adam(spec.beta1, spec.beta2, spec.epsilon, spec.lazy), dtype)

    def block_numbers(rate: float, t: int) -> tuple[float, ...]:
        return *plain.block_numbers(rate, t), rate * spec.weight_decay

    def row_numbers(rate: float, t: int) -> tuple[Any, ...]:
        return *plain.row_numbers(rate, t), rate * spec.weight_decay

    block, rows, rest = update_kernels.adamw
    return OptimizerRule(
        plain.first, block, rows, block_numbers, row_numbers, None if spec.lazy else rest
    )


def _adamax(spec: specs.Adamax, dtype: Any) -> OptimizerRule:
    beta1, numbers = spec.beta1, (spec.beta1, spec.beta2, spec.epsilon)
    corrections = adam_corrections(beta1, 0.0, dtype)

    def block_numbers(rate: float, t: int) -> tuple[float, ...]:
        return rate / (1.0 - beta1**t), *numbers

    def row_numbers(rate: float, t: int) -> tuple[Any, ...]:
        return corrections, rate, *numbers

    return OptimizerRule((0.0, 0.0), *update_kernels.adamax[:2], block_numbers, row_numbers)


def _lamb(spec: specs.Lamb, dtype: Any) -> OptimizerRule:
    beta1, beta2, eps, decay = spec.beta1, spec.beta2, spec.epsilon, spec.lamb_weight_decay
    corrections = adam_corrections(beta1, beta2, dtype)

    def block_numbers(rate: float, t: int) -> tuple[Any, ...]:
        scale, eps_hat = adam_step_size(1.0, beta1, beta2, eps, t)
        return np.empty(2 * LANES), rate, scale, eps_hat, beta1, beta2, decay

    def row_numbers(rate: float, t: int) -> tuple[Any, ...]:
        return np.empty(2 * LANES), corrections, rate, eps, beta1, beta2, decay

    return OptimizerRule((0.0, 0.0), *update_kernels.lamb[:2], block_numbers, row_numbers)


def _ctr_adam(spec: specs.CtrAdam | specs.CtrSharedAdam, dtype: Any) -> OptimizerRule:
    beta1, beta2 = spec.beta1, spec.beta2
    numbers = (beta1, beta2, spec.epsilon, spec.weight_min, spec.weight_max)
    corrections = adam_corrections(beta1, beta2, dtype)

    def block_numbers(rate: float, t: int) -> tuple[Any, ...]:
        return adam_step_size(rate, beta1, beta2, 0.0, t)[0], *numbers

    def row_numbers(rate: float, t: int) -> tuple[Any, ...]:
        return corrections, rate, *numbers

    return OptimizerRule((0.0, 0.0), *update_kernels.ctr_adam[:2], block_numbers, row_numbers)


def _ctr_shared_adam(spec: specs.CtrSharedAdam, dtype: Any) -> OptimizerRule:
    own = _ctr_adam(spec, dtype)

    def block_numbers(rate: float, t: int) -> tuple[Any, ...]:
        return np.empty(LANES), *own.block_numbers(rate, t)

    def row_numbers(rate: float, t: int) -> tuple[Any, ...]:
        return np.empty(LANES), *own.row_numbers(rate, t)

    block, rows = update_kernels.ctr_shared_adam[:2]
    return OptimizerRule(own.first, block, rows, block_numbers, row_numbers, shares_state=True)


_RULES: dict[type, Callable[[Any, Any], OptimizerRule]] = {
    specs.Sgd: _sgd,
    specs.Momentum: _momentum,
    specs.Adagrad: _adagrad,
    specs.RowWiseAdagrad: _row_wise_adagrad,
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
