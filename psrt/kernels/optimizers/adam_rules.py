"""The rules of Adam and its kin, which correct the bias of their first steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.core import specs
from psrt.core.types import Array
from psrt.kernels.optimizers import adam_row_updates, dense_updates
from psrt.kernels.optimizers.dense_updates import adam_corrections, adam_step_size
from psrt.kernels.optimizers.elementwise import LANES
from psrt.kernels.optimizers.optimizer_rule import OptimizerRule


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


def adam(spec: specs.Adam, dtype: Any) -> OptimizerRule:
    beta1, beta2, eps = spec.beta1, spec.beta2, spec.epsilon
    corrections = _Corrections(beta1, beta2, spec.lazy, dtype)

    def block_numbers(rate: float, t: int) -> tuple[float, ...]:
        step_size, eps_hat = adam_step_size(rate, beta1, beta2, eps, t)
        return step_size, beta1, beta2, eps_hat

    def row_numbers(rate: float, t: int) -> tuple[Any, ...]:
        return corrections.of_table(t), rate, beta1, beta2, eps

    rest = None if spec.lazy else adam_row_updates.adam_rest_
    block, rows = dense_updates.adam_, adam_row_updates.adam_rows_
    return OptimizerRule((0.0, 0.0), block, rows, block_numbers, row_numbers, rest)


def adamw(spec: specs.AdamW, dtype: Any) -> OptimizerRule:
    plain = adam(specs.Adam(spec.beta1, spec.beta2, spec.epsilon, spec.lazy), dtype)

    def block_numbers(rate: float, t: int) -> tuple[float, ...]:
        return *plain.block_numbers(rate, t), rate * spec.weight_decay

    def row_numbers(rate: float, t: int) -> tuple[Any, ...]:
        return *plain.row_numbers(rate, t), rate * spec.weight_decay

    rest = None if spec.lazy else adam_row_updates.adamw_rest_
    block, rows = dense_updates.adamw_, adam_row_updates.adamw_rows_
    return OptimizerRule(plain.first, block, rows, block_numbers, row_numbers, rest)


def adamax(spec: specs.Adamax, dtype: Any) -> OptimizerRule:
    beta1, numbers = spec.beta1, (spec.beta1, spec.beta2, spec.epsilon)
    corrections = adam_corrections(beta1, 0.0, dtype)

    def block_numbers(rate: float, t: int) -> tuple[float, ...]:
        return rate / (1.0 - beta1**t), *numbers

    def row_numbers(rate: float, t: int) -> tuple[Any, ...]:
        return corrections, rate, *numbers

    block, rows = dense_updates.adamax_, adam_row_updates.adamax_rows_
    return OptimizerRule((0.0, 0.0), block, rows, block_numbers, row_numbers)


def lamb(spec: specs.Lamb, dtype: Any) -> OptimizerRule:
    beta1, beta2, eps, decay = spec.beta1, spec.beta2, spec.epsilon, spec.lamb_weight_decay
    corrections = adam_corrections(beta1, beta2, dtype)

    def block_numbers(rate: float, t: int) -> tuple[Any, ...]:
        scale, eps_hat = adam_step_size(1.0, beta1, beta2, eps, t)
        return np.empty(2 * LANES), rate, scale, eps_hat, beta1, beta2, decay

    def row_numbers(rate: float, t: int) -> tuple[Any, ...]:
        return np.empty(2 * LANES), corrections, rate, beta1, beta2, eps, decay

    block, rows = dense_updates.lamb_, adam_row_updates.lamb_rows_
    return OptimizerRule((0.0, 0.0), block, rows, block_numbers, row_numbers)
