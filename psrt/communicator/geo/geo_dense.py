"""The dense parameters of a Geo trainer: what it has changed since the last agreement.

`train`, the trainer's own arrays, is moved by its optimizer; `old` is kept here. During an exchange
there is a third array for each parameter: the change goes out of it, and the answer is written into
it, block by block as pservers have applied the change. Formulas: `psrt.kernels.tables.agreement`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from psrt.core.types import F32
from psrt.kernels.tables import agreement


class GeoDense:
    """`train(name)` gives the trainer's array, contiguous float32, as it is now."""

    def __init__(self, train: Callable[[str], F32]) -> None:
        self._train = train
        self._old: dict[str, F32] = {}

    def begin(self, values: Mapping[str, F32]) -> None:
        """Training starts from these."""
        self._old = {name: array.copy() for name, array in values.items()}

    def current(self) -> dict[str, F32]:
        """The arrays that are trained, not copied."""
        return {name: self._train(name) for name in self._old}

    def room(self) -> dict[str, F32]:
        """An array for the answer for each parameter."""
        return {name: np.empty_like(old) for name, old in self._old.items()}

    def give(self, trainers: int) -> tuple[dict[str, F32], dict[str, F32]]:
        """1/`trainers` of the own changes, which are agreed on from now on.

        Returns those that are not 0, by parameter, and an array for the answer for all parameters;
        where there is a change the two are one.
        """
        room = self.room()
        changed = {name: delta for name, delta in room.items() if self._give(name, trainers, delta)}
        return changed, room

    def take(self, agreed: Mapping[str, F32]) -> None:
        """Pservers hold `agreed`; own progress since the last `give` stays on top of that."""
        for name, values in agreed.items():
            old = self._old[name].reshape(-1)
            agreement.take_block_(self._train(name).reshape(-1), old, values.reshape(-1))

    def _give(self, name: str, trainers: int, delta: F32) -> bool:
        train, old = self._train(name).reshape(-1), self._old[name].reshape(-1)
        return bool(agreement.give_block_(train, old, trainers, delta.reshape(-1)))
