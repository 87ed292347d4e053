"""The dense parameters of a Geo trainer, and its changes since the last agreement.

The trainer's optimizer updates `train`, its own arrays; `old` is kept here. An exchange adds a
third array for each parameter: the change is sent from it, and the answer is written into it, block
by block as pservers apply the change. Formulas: `psrt.kernels.tables.agreement`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from psrt.core.types import F32
from psrt.kernels.tables import agreement


class Kept(NamedTuple):
    """A parameter in a cut: as trained here, and as last agreed on."""

    train: F32
    old: F32


class GeoDense:
    """`train(name)` returns the trainer's current array, contiguous float32."""

    def __init__(self, train: Callable[[str], F32]) -> None:
        self._train = train
        self._old: dict[str, F32] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._old)

    def begin(self, values: Mapping[str, F32], restored: Mapping[str, Kept]) -> None:
        """Start training from `values`, those of the pservers, changed in place to what the
        trainer had in a cut and the changes of others since."""
        self._old = {name: array.copy() for name, array in values.items()}
        for name, kept in restored.items():
            values[name][...], old = kept.train, kept.old.reshape(-1)
            agreement.take_block_(values[name].reshape(-1), old, self._old[name].reshape(-1))

    def kept(self, name: str) -> Kept:
        """A parameter for a cut, not copied."""
        return Kept(self._train(name), self._old[name])

    def current(self) -> dict[str, F32]:
        """The trained arrays, not copied."""
        return {name: self._train(name) for name in self._old}

    def empty_answer(self) -> dict[str, F32]:
        """An uninitialised array for the answer of each parameter."""
        return {name: np.empty_like(old) for name, old in self._old.items()}

    def give(self, trainers: int) -> tuple[dict[str, F32], dict[str, F32]]:
        """1/`trainers` of the local changes, which count as agreed on from now on.

        Returns changes other than 0 and the arrays for the answer, by parameter; a change shares
        its array with the answer.
        """
        answer = self.empty_answer()
        changed = {name: each for name, each in answer.items() if self._give(name, trainers, each)}
        return changed, answer

    def take(self, agreed: Mapping[str, F32]) -> None:
        """Apply `agreed`, the values of the pservers; changes since the last `give` are kept."""
        for name, values in agreed.items():
            old = self._old[name].reshape(-1)
            agreement.take_block_(self._train(name).reshape(-1), old, values.reshape(-1))

    def _give(self, name: str, trainers: int, delta: F32) -> bool:
        train, old = self._train(name).reshape(-1), self._old[name].reshape(-1)
        return bool(agreement.give_block_(train, old, trainers, delta.reshape(-1)))
