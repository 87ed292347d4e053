"""Optimizer spec → its rule (`psrt.kernels.optimizers.optimizer_rule`); the rules of most
optimizers stand here.

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
from psrt.kernels.optimizers import adam_rules, ctr_rules, dense_updates, row_updates
from psrt.kernels.optimizers.elementwise import LANES
from psrt.kernels.optimizers.optimizer_rule import (
    OptimizerRule,
    RowTable,
    TouchedRows,
    constant_rule,
)

__all__ = ["OptimizerRule", "RowTable", "TouchedRows", "rule_of"]


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


def _sgd(spec: specs.Sgd, dtype: Any) -> OptimizerRule:
    return constant_rule((), dense_updates.sgd_, row_updates.sgd_rows_)


def _add(spec: specs.Add, dtype: Any) -> OptimizerRule:
    def arguments(rate: float, t: int) -> tuple[float, ...]:
        return (-1.0,)  # w −= (−1) · g is w + g to the last bit

    sgd = _sgd(specs.Sgd(), dtype)
    return dataclasses.replace(sgd, block_numbers=arguments, row_numbers=arguments)


def _momentum(spec: specs.Momentum, dtype: Any) -> OptimizerRule:
    block, rows = dense_updates.momentum_, row_updates.momentum_rows_
    return constant_rule((0.0,), block, rows, spec.momentum, spec.nesterov)


def _adagrad(spec: specs.Adagrad, dtype: Any) -> OptimizerRule:
    block, rows = dense_updates.adagrad_, row_updates.adagrad_rows_
    return constant_rule((spec.initial_accumulator,), block, rows, spec.epsilon)


def _decayed_adagrad(spec: specs.DecayedAdagrad, dtype: Any) -> OptimizerRule:
    block, rows = dense_updates.decayed_adagrad_, row_updates.decayed_adagrad_rows_
    return constant_rule((0.0,), block, rows, spec.decay, spec.epsilon)


def _adadelta(spec: specs.Adadelta, dtype: Any) -> OptimizerRule:
    block, rows = dense_updates.adadelta_, row_updates.adadelta_rows_
    return constant_rule((0.0, 0.0), block, rows, spec.rho, spec.epsilon)


def _rms_prop(spec: specs.RmsProp, dtype: Any) -> OptimizerRule:
    numbers = (spec.rho, spec.epsilon, spec.momentum)
    if spec.centered:
        block, rows = dense_updates.centered_rms_prop_, row_updates.centered_rms_prop_rows_
        return constant_rule((0.0, 0.0, 0.0), block, rows, *numbers)
    return constant_rule((0.0, 0.0), dense_updates.rms_prop_, row_updates.rms_prop_rows_, *numbers)


def _ftrl(spec: specs.Ftrl, dtype: Any) -> OptimizerRule:
    first = (spec.initial_accumulator, 0.0)
    numbers = (spec.l1, spec.l2, -spec.lr_power)
    return constant_rule(first, dense_updates.ftrl_, row_updates.ftrl_rows_, *numbers)


def _lars(spec: specs.LarsMomentum, dtype: Any) -> OptimizerRule:
    numbers = (spec.momentum, spec.lars_coeff, spec.lars_weight_decay, spec.epsilon)

    def arguments(rate: float, t: int) -> tuple[Any, ...]:
        return np.empty(LANES), rate, *numbers

    return OptimizerRule((0.0,), dense_updates.lars_, row_updates.lars_rows_, arguments, arguments)


_RULES: dict[type, Callable[[Any, Any], OptimizerRule]] = {
    specs.Sgd: _sgd,
    specs.Momentum: _momentum,
    specs.Adagrad: _adagrad,
    specs.DecayedAdagrad: _decayed_adagrad,
    specs.Adadelta: _adadelta,
    specs.RmsProp: _rms_prop,
    specs.Adam: adam_rules.adam,
    specs.AdamW: adam_rules.adamw,
    specs.Adamax: adam_rules.adamax,
    specs.Ftrl: _ftrl,
    specs.LarsMomentum: _lars,
    specs.Lamb: adam_rules.lamb,
    specs.Add: _add,
    specs.CtrSgd: ctr_rules.ctr_sgd,
    specs.CtrAdagrad: ctr_rules.ctr_adagrad,
    specs.CtrStdAdagrad: ctr_rules.ctr_std_adagrad,
    specs.CtrAdam: ctr_rules.ctr_adam,
    specs.CtrSharedAdam: ctr_rules.ctr_shared_adam,
}
