"""The rules of the optimizers of click models."""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.core import specs
from psrt.kernels.optimizers import ctr_updates
from psrt.kernels.optimizers.dense_updates import adam_corrections, adam_step_size
from psrt.kernels.optimizers.elementwise import LANES
from psrt.kernels.optimizers.optimizer_rule import OptimizerRule, constant_rule


def ctr_sgd(spec: specs.CtrSgd, dtype: Any) -> OptimizerRule:
    bounds = (spec.weight_min, spec.weight_max)
    return constant_rule((), ctr_updates.ctr_sgd_, ctr_updates.ctr_sgd_rows_, *bounds)


def ctr_adagrad(spec: specs.CtrAdagrad, dtype: Any) -> OptimizerRule:
    numbers = (spec.initial_g2sum, spec.weight_min, spec.weight_max)

    def arguments(rate: float, t: int) -> tuple[Any, ...]:
        return np.empty(LANES), rate, *numbers

    block, rows = ctr_updates.ctr_adagrad_, ctr_updates.ctr_adagrad_rows_
    return OptimizerRule((0.0,), block, rows, arguments, arguments, shares_state=True)


def ctr_std_adagrad(spec: specs.CtrStdAdagrad, dtype: Any) -> OptimizerRule:
    numbers = (spec.initial_g2sum, spec.weight_min, spec.weight_max)
    block, rows = ctr_updates.ctr_std_adagrad_, ctr_updates.ctr_std_adagrad_rows_
    return constant_rule((0.0,), block, rows, *numbers)


def ctr_adam(spec: specs.CtrAdam | specs.CtrSharedAdam, dtype: Any) -> OptimizerRule:
    beta1, beta2 = spec.beta1, spec.beta2
    numbers = (beta1, beta2, spec.epsilon, spec.weight_min, spec.weight_max)
    corrections = adam_corrections(beta1, beta2, dtype)

    def block_numbers(rate: float, t: int) -> tuple[Any, ...]:
        return adam_step_size(rate, beta1, beta2, 0.0, t)[0], *numbers

    def row_numbers(rate: float, t: int) -> tuple[Any, ...]:
        return corrections, rate, *numbers

    block, rows = ctr_updates.ctr_adam_, ctr_updates.ctr_adam_rows_
    return OptimizerRule((0.0, 0.0), block, rows, block_numbers, row_numbers)


def ctr_shared_adam(spec: specs.CtrSharedAdam, dtype: Any) -> OptimizerRule:
    own = ctr_adam(spec, dtype)

    def block_numbers(rate: float, t: int) -> tuple[Any, ...]:
        return np.empty(LANES), *own.block_numbers(rate, t)

    def row_numbers(rate: float, t: int) -> tuple[Any, ...]:
        return np.empty(LANES), *own.row_numbers(rate, t)

    block, rows = ctr_updates.ctr_shared_adam_, ctr_updates.ctr_shared_adam_rows_
    return OptimizerRule(own.first, block, rows, block_numbers, row_numbers, shares_state=True)
