"""Update rules of tables: how many words of state a weight needs, and which kernels move it.

A rule is stateless and shared; the table that calls it holds weights and state and their lock.
"""

from __future__ import annotations

from typing import Any, Protocol, assert_never

from psrt.core.specs import Adagrad, Adam, Optimizer, Sgd
from psrt.core.types import F32
from psrt.kernels import optimizers as kernels
from psrt.kernels import slab

RowArguments = tuple[Any, ...]
"""The arguments all row kernels of `psrt.kernels.slab` share: stripe, batch, start of a row."""


class Rule(Protocol):
    @property
    def state_words(self) -> int:
        """Words of state per weight."""
        ...

    @property
    def initial_state(self) -> float: ...

    def update_block(self, w: F32, state: F32, g: F32, rate: float, t: int) -> None:
        """Update `w` (n,) and `state` (state_words, n) by gradient `g` (n,); t = 1, 2, …"""
        ...

    def update_rows(self, rows: RowArguments, rate: float) -> int:
        """Update and create rows of one stripe; the new size of its id map."""
        ...


class SgdRule:
    state_words = 0
    initial_state = 0.0

    def update_block(self, w: F32, state: F32, g: F32, rate: float, t: int) -> None:
        kernels.sgd_(w, g, rate)

    def update_rows(self, rows: RowArguments, rate: float) -> int:
        return int(slab.apply_sgd_(*rows, rate))


class AdagradRule:
    state_words = 1

    def __init__(self, spec: Adagrad) -> None:
        self.initial_state = spec.initial_accumulator
        self._epsilon = spec.epsilon

    def update_block(self, w: F32, state: F32, g: F32, rate: float, t: int) -> None:
        kernels.adagrad_(w, state[0], g, rate, self._epsilon)

    def update_rows(self, rows: RowArguments, rate: float) -> int:
        return int(slab.apply_adagrad_(*rows, rate, self._epsilon))


class AdamRule:
    state_words = 2
    initial_state = 0.0

    def __init__(self, spec: Adam) -> None:
        self._spec = spec
        self._corrections = kernels.adam_corrections(spec.beta1, spec.beta2)

    def update_block(self, w: F32, state: F32, g: F32, rate: float, t: int) -> None:
        beta1, beta2 = self._spec.beta1, self._spec.beta2
        step_size, eps_hat = kernels.adam_step_size(rate, beta1, beta2, self._spec.epsilon, t)
        kernels.adam_(w, state[0], state[1], g, step_size, beta1, beta2, eps_hat)

    def update_rows(self, rows: RowArguments, rate: float) -> int:
        spec = self._spec
        return int(
            slab.apply_adam_(*rows, rate, spec.beta1, spec.beta2, spec.epsilon, self._corrections)
        )


def rule_of(optimizer: Optimizer) -> Rule:
    match optimizer:
        case Sgd():
            return SgdRule()
        case Adagrad():
            return AdagradRule(optimizer)
        case Adam():
            return AdamRule(optimizer)
        case _:
            assert_never(optimizer)
